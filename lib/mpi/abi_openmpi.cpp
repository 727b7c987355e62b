#include "lib/mpi/abi.hpp"

#include <type_traits>

#include "lib/mpi/host.hpp"
#include "lib/mpi/host_symbol.hpp"

namespace hips::mpi {

constinit const std::string_view kInterposerName = "libhips_mpi.so";

bool host_is_of_abi() {
  return host_symbol("ompi_mpi_comm_world") != nullptr;
}

bool look_up_handles(Host& host) {
  bool complete = true;
  const auto look_up = [&](auto& handle, const char* object) {
    handle = Predefined<std::remove_reference_t<decltype(handle)>>{object}.handle();
    complete = handle != nullptr && complete;
  };
  look_up(host.world, "ompi_mpi_comm_world");
  look_up(host.self, "ompi_mpi_comm_self");
  host.probed = host.self;
  look_up(host.no_comm, "ompi_mpi_comm_null");
  look_up(host.no_type, "ompi_mpi_datatype_null");
  look_up(host.no_request, "ompi_request_null");
  look_up(host.byte_type, "ompi_mpi_byte");
  look_up(host.errors_are_fatal, "ompi_mpi_errors_are_fatal");
  return complete;
}

void* host_function(const char* name) {
  return host_symbol(name);
}

HostProgress look_up_host_progress() {
  const auto find = [](const char* name) {
    return reinterpret_cast<HostProgress::Function*>(host_symbol(name));
  };
  return {find("opal_progress_register"), find("opal_progress_unregister")};
}

}  // namespace hips::mpi
