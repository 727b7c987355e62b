#include <cstdio>
#include <cstdlib>

#include "lib/mpi/abi.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/host_symbol.hpp"

namespace hips::mpi {

constinit const std::string_view kInterposerName = "libhips_mpich.so";

bool host_is_of_abi() {
  // MPI_DUP_FN of mpi.h, so that every library of this ABI has it.
  return host_symbol("MPIR_Dup_fn") != nullptr && host_symbol("ompi_mpi_comm_world") == nullptr;
}

bool look_up_handles(Host& host) {
  host.world = MPI_COMM_WORLD;
  host.self = MPI_COMM_SELF;
  host.probed = MPI_COMM_WORLD;  // A probe of MPI_COMM_SELF does not look at what others send.
  host.no_comm = MPI_COMM_NULL;
  host.no_type = MPI_DATATYPE_NULL;
  host.no_request = MPI_REQUEST_NULL;
  host.byte_type = MPI_BYTE;
  host.errors_are_fatal = MPI_ERRORS_ARE_FATAL;
  return host_is_of_abi();
}

void* host_function(const char* name) {
  if (host_is_loaded() && !host_is_of_abi()) {
    // The upper half of its handles is lost already.
    std::fputs(
        "hips: libhips_mpich.so is for programs of MPICH, and the MPI of this one is another; for Open MPI: "
        "hips run --mpi openmpi, or libhips_mpi.so in LD_PRELOAD\n",
        stderr);
    std::_Exit(2);
  }
  return host_symbol(name);
}

HostProgress look_up_host_progress() {
  // MPICH's hooks (MPIR_Progress_hook_register) are not among its symbols.
  return {};
}

}  // namespace hips::mpi
