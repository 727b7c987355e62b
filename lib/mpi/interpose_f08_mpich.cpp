#include <mpi.h>

#include "lib/mpi/collectives.hpp"
#include "lib/mpi/fortran.hpp"
#include "lib/mpi/icollectives.hpp"

// Nothing but a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

// The collectives without a buffer: MPICH's module mpi_f08 calls PMPI_ functions for them, and MPI_ ones for
// the others.

extern "C" {

HIPS_API void mpi_barrier_f08_(const MPI_Fint* comm, MPI_Fint* ierror) {
  const int code = hips::mpi::barrier(*comm);
  if (ierror) *ierror = code;
}

HIPS_API void mpi_ibarrier_f08_(const MPI_Fint* comm, MPI_Fint* request, MPI_Fint* ierror) {
  const int code = hips::mpi::ibarrier(*comm, request);
  if (ierror) *ierror = code;
}
}
