#include <cstdio>
#include <cstdlib>

#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/native/native_symbol.hpp"

namespace hips::mpi {

constinit const std::string_view kInterposerName = "libhips_mpich.so";

bool native_has_our_abi() {
  // MPIR_Dup_fn is MPI_DUP_FN of mpi.h, so every library of this ABI has it.
  return native_symbol("MPIR_Dup_fn") != nullptr && native_symbol("ompi_mpi_comm_world") == nullptr;
}

bool look_up_handles(NativeMpi& native) {
  native.world = MPI_COMM_WORLD;
  native.self = MPI_COMM_SELF;
  native.probed = MPI_COMM_WORLD;  // A probe of MPI_COMM_SELF does not look at messages of other ranks.
  native.no_comm = MPI_COMM_NULL;
  native.no_type = MPI_DATATYPE_NULL;
  native.no_op = MPI_OP_NULL;
  native.and_op = MPI_BAND;
  native.no_request = MPI_REQUEST_NULL;
  native.byte_type = MPI_BYTE;
  native.errors_are_fatal = MPI_ERRORS_ARE_FATAL;
  return native_has_our_abi();
}

void* native_address(const char* name) {
  if (native_is_loaded() && !native_has_our_abi()) {
    // The upper half of the program's handles is lost already.
    std::fputs(
        "hips: libhips_mpich.so is for programs of MPICH, but this program uses another MPI; for Open MPI: "
        "hips run --mpi openmpi, or libhips_mpi.so in LD_PRELOAD\n",
        stderr);
    std::_Exit(2);
  }
  return native_symbol(name);
}

ProgressHook look_up_progress_hook() {
  // MPICH has hooks (MPIR_Progress_hook_register), but does not export them.
  return {};
}

}  // namespace hips::mpi
