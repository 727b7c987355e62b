#include <mpi.h>

#include "lib/mpi/fortran/arguments.hpp"
#include "lib/mpi/process/memory.hpp"
#include "lib/mpi/process/windows.hpp"

// Only a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace mpi = hips::mpi;

extern "C" {

// ierror may be absent, but not for native MPI's functions.
#define HIPS_MEMORY_FUNCTION(Name, name, NAME, ...)                                                 \
  HIPS_API void mpi_##name##_(HIPS_MAP(HIPS_PARAMETER_OF_FORTRAN, __VA_ARGS__), MPI_Fint* ierror) { \
    MPI_Fint error = MPI_SUCCESS;                                                                   \
    if (const auto code = mpi::name(HIPS_MAP(HIPS_ARGUMENT_FROM_FORTRAN, __VA_ARGS__))) {           \
      error = *code;                                                                                \
    } else {                                                                                        \
      static constinit mpi::NativeFortran<decltype(mpi_##name##_)> next;                            \
      next.get(HIPS_NATIVE_FORTRAN(name))(HIPS_MAP(HIPS_ARGUMENT, __VA_ARGS__), &error);            \
    }                                                                                               \
    if (ierror) *ierror = error;                                                                    \
  }                                                                                                 \
  HIPS_FORTRAN_NAMES(mpi_##name, MPI_##NAME, MPI_##Name)
#define HIPS_WINDOW_FUNCTION(Name, name, NAME, ...)                                                 \
  HIPS_API void mpi_##name##_(HIPS_MAP(HIPS_PARAMETER_OF_FORTRAN, __VA_ARGS__), MPI_Fint* ierror) { \
    mpi::note_window();                                                                             \
    MPI_Fint error = MPI_SUCCESS;                                                                   \
    static constinit mpi::NativeFortran<decltype(mpi_##name##_)> next;                              \
    next.get(HIPS_NATIVE_FORTRAN(name))(HIPS_MAP(HIPS_ARGUMENT, __VA_ARGS__), &error);              \
    if (ierror) *ierror = error;                                                                    \
  }                                                                                                 \
  HIPS_FORTRAN_NAMES(mpi_##name, MPI_##NAME, MPI_##Name)
#include "lib/mpi/signatures.def"

// For a TYPE(C_PTR) of the module mpi.
HIPS_API decltype(mpi_alloc_mem_) mpi_alloc_mem_cptr __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_alloc_mem_) mpi_alloc_mem_cptr_ __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_alloc_mem_) mpi_alloc_mem_cptr__ __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_alloc_mem_) MPI_ALLOC_MEM_CPTR __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_alloc_mem_) MPI_Alloc_mem_cptr_f __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_alloc_mem_) MPI_Alloc_mem_cptr_f08 __attribute__((alias("mpi_alloc_mem_")));
HIPS_API decltype(mpi_win_allocate_) mpi_win_allocate_cptr __attribute__((alias("mpi_win_allocate_")));
HIPS_API decltype(mpi_win_allocate_) mpi_win_allocate_cptr_ __attribute__((alias("mpi_win_allocate_")));
HIPS_API decltype(mpi_win_allocate_) mpi_win_allocate_cptr__ __attribute__((alias("mpi_win_allocate_")));
HIPS_API decltype(mpi_win_allocate_) MPI_WIN_ALLOCATE_CPTR __attribute__((alias("mpi_win_allocate_")));
HIPS_API decltype(mpi_win_allocate_) MPI_Win_allocate_cptr_f __attribute__((alias("mpi_win_allocate_")));
HIPS_API decltype(mpi_win_allocate_) MPI_Win_allocate_cptr_f08 __attribute__((alias("mpi_win_allocate_")));
}
