#include <mpi.h>

#include "lib/mpi/fortran.hpp"
#include "lib/mpi/memory.hpp"

// Nothing but a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

using hips::mpi::fortran_function_of_host;

extern "C" {

HIPS_API void mpi_alloc_mem_(const MPI_Aint* size, const MPI_Fint* info, void** baseptr, MPI_Fint* ierror) {
  if (void* const memory = hips::mpi::alloc_mem(*size)) {
    *baseptr = memory;
    if (ierror) *ierror = MPI_SUCCESS;
    return;
  }
  static auto* const next = fortran_function_of_host<decltype(mpi_alloc_mem_)>("pmpi_alloc_mem_");
  MPI_Fint error = MPI_SUCCESS;
  next(size, info, baseptr, &error);
  if (ierror) *ierror = error;
}
HIPS_MPI_FORTRAN_NAMES(mpi_alloc_mem, MPI_ALLOC_MEM, MPI_Alloc_mem);

// For a TYPE(C_PTR) of the module mpi.
HIPS_API decltype(mpi_alloc_mem_) mpi_alloc_mem_cptr __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_alloc_mem_) mpi_alloc_mem_cptr_ __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_alloc_mem_) mpi_alloc_mem_cptr__ __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_alloc_mem_) MPI_ALLOC_MEM_CPTR __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_alloc_mem_) MPI_Alloc_mem_cptr_f __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_alloc_mem_) MPI_Alloc_mem_cptr_f08 __attribute__((alias("mpi_alloc_mem_")));

HIPS_API void mpi_free_mem_(void* base, MPI_Fint* ierror) {
  MPI_Fint error = MPI_SUCCESS;
  if (hips::mpi::is_ours(base)) {
    error = hips::mpi::free_mem(base);
  } else {
    static auto* const next = fortran_function_of_host<decltype(mpi_free_mem_)>("pmpi_free_mem_");
    next(base, &error);
  }
  if (ierror) *ierror = error;
}
HIPS_MPI_FORTRAN_NAMES(mpi_free_mem, MPI_FREE_MEM, MPI_Free_mem);
}
