#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/abi.hpp"
#include "lib/mpi/memory.hpp"

extern "C" {

HIPS_API int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
  // Whoever passes no place for the address learns from the host what it thinks of that.
  if (void* const memory = baseptr == nullptr ? nullptr : hips::mpi::alloc_mem(size)) {
    *static_cast<void**>(baseptr) = memory;
    return MPI_SUCCESS;
  }
  static auto* const next = hips::mpi::of_host<decltype(MPI_Alloc_mem)>("PMPI_Alloc_mem");
  return next(size, info, baseptr);
}

HIPS_API int MPI_Free_mem(void* base) {
  if (hips::mpi::is_ours(base)) return hips::mpi::free_mem(base);
  static auto* const next = hips::mpi::of_host<decltype(MPI_Free_mem)>("PMPI_Free_mem");
  return next(base);
}
}
