#include "lib/mpi/native/abi.hpp"

#include <type_traits>

#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/native/native_symbol.hpp"

namespace hips::mpi {

constinit const std::string_view kInterposerName = "libhips_mpi.so";

bool native_has_our_abi() {
  return native_symbol("ompi_mpi_comm_world") != nullptr;
}

bool look_up_handles(NativeMpi& native) {
  bool complete = true;
  const auto look_up = [&](auto& handle, const char* object) {
    handle = Predefined<std::remove_reference_t<decltype(handle)>>{object}.handle();
    complete = handle != nullptr && complete;
  };
  look_up(native.world, "ompi_mpi_comm_world");
  look_up(native.self, "ompi_mpi_comm_self");
  native.probed = native.self;
  look_up(native.no_comm, "ompi_mpi_comm_null");
  look_up(native.no_type, "ompi_mpi_datatype_null");
  look_up(native.no_op, "ompi_mpi_op_null");
  look_up(native.and_op, "ompi_mpi_op_band");
  look_up(native.no_request, "ompi_request_null");
  look_up(native.byte_type, "ompi_mpi_byte");
  look_up(native.errors_are_fatal, "ompi_mpi_errors_are_fatal");
  return complete;
}

void* native_address(const char* name) {
  return native_symbol(name);
}

ProgressHook look_up_progress_hook() {
  const auto find = [](const char* name) {
    return reinterpret_cast<ProgressHook::Function*>(native_symbol(name));
  };
  return {find("opal_progress_register"), find("opal_progress_unregister")};
}

}  // namespace hips::mpi
