// MPI_Init and MPI_Init_thread of Fortran: of all bindings for Open MPI, of mpi_f08 for MPICH, whose other bindings call
// the functions of C.

#include <mpi.h>

#include "lib/mpi/fortran/arguments.hpp"
#include "lib/mpi/process/mpi_process.hpp"

// Only a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace mpi = hips::mpi;

namespace {

void end_init(MPI_Fint error, MPI_Fint* ierror) {
  if (error == MPI_SUCCESS) mpi::MpiProcess::begin();
  if (ierror) *ierror = error;
}

}  // namespace

extern "C" {

// ierror may be absent, but not for native MPI's functions.
HIPS_API void HIPS_FORTRAN(init)(MPI_Fint* ierror) {
  static constinit mpi::NativeFortran<decltype(HIPS_FORTRAN(init))> next;
  MPI_Fint error = MPI_SUCCESS;
  next.get(HIPS_NATIVE_FORTRAN(init))(&error);
  end_init(error, ierror);
}
HIPS_FORTRAN_NAMES(mpi_init, MPI_INIT, MPI_Init)

HIPS_API void HIPS_FORTRAN(init_thread)(const MPI_Fint* required, MPI_Fint* provided, MPI_Fint* ierror) {
  static constinit mpi::NativeFortran<decltype(HIPS_FORTRAN(init_thread))> next;
  MPI_Fint error = MPI_SUCCESS;
  next.get(HIPS_NATIVE_FORTRAN(init_thread))(required, provided, &error);
  end_init(error, ierror);
}
HIPS_FORTRAN_NAMES(mpi_init_thread, MPI_INIT_THREAD, MPI_Init_thread)
}
