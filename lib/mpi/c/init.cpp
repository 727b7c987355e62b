// MPI_Init and MPI_Init_thread: all ranks call them, so that what all have to agree on is exchanged there.

#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/native/native_symbol.hpp"
#include "lib/mpi/process/mpi_process.hpp"

namespace mpi = hips::mpi;

extern "C" {

HIPS_API int MPI_Init(int* argc, char*** argv) {
  static constinit mpi::NativeFunction<decltype(MPI_Init), mpi::native_symbol> next;
  const int code = next.get("PMPI_Init")(argc, argv);
  if (code == MPI_SUCCESS) mpi::MpiProcess::begin();
  return code;
}

HIPS_API int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  static constinit mpi::NativeFunction<decltype(MPI_Init_thread), mpi::native_symbol> next;
  const int code = next.get("PMPI_Init_thread")(argc, argv, required, provided);
  if (code == MPI_SUCCESS) mpi::MpiProcess::begin();
  return code;
}
}
