#pragma once

#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/fortran_sentinel.hpp"
#include "lib/mpi/host.hpp"

// What wrappers for the bindings of Fortran share. Open MPI's bindings call PMPI_ functions and so pass by
// a wrapper of the C function: each binding needs wrappers of its own. Of MPICH's only mpi_f08 does, and only
// where no buffer is passed; a handle there is the one of C. All of them pass addresses; mpif.h and the mpi
// module call mpi_x_, the mpi_f08 module calls mpi_x_f08_ (a handle there is a struct of one INTEGER, a
// status one of as many as the array has, and ierror may be absent), and the other names are those under
// which other compilers call the same function.

#ifdef HIPS_MPI_ABI_OPENMPI

/// mpi_wait_, and the host's own.
#define HIPS_MPI_FORTRAN(name) mpi_##name##_
#define HIPS_MPI_FORTRAN_OF_HOST(name) \
  hips::mpi::fortran_function_of_host<decltype(mpi_##name##_)>("pmpi_" #name "_")

/// `lower`_ under its other names; after its definition, inside extern "C".
#define HIPS_MPI_FORTRAN_NAMES(lower, upper, mixed)                           \
  HIPS_API decltype(lower##_) lower __attribute__((alias(#lower "_")));       \
  HIPS_API decltype(lower##_) lower##__ __attribute__((alias(#lower "_")));   \
  HIPS_API decltype(lower##_) upper __attribute__((alias(#lower "_")));       \
  HIPS_API decltype(lower##_) mixed##_f __attribute__((alias(#lower "_")));   \
  HIPS_API decltype(lower##_) mixed##_f08 __attribute__((alias(#lower "_"))); \
  HIPS_API decltype(lower##_) lower##_f08_ __attribute__((alias(#lower "_")))

#else

/// mpi_wait_f08_, and the host's own.
#define HIPS_MPI_FORTRAN(name) mpi_##name##_f08_
#define HIPS_MPI_FORTRAN_OF_HOST(name) \
  hips::mpi::fortran_function_of_host<decltype(mpi_##name##_f08_)>("pmpir_" #name "_f08_")

#define HIPS_MPI_FORTRAN_NAMES(lower, upper, mixed) static_assert(true)

#endif

namespace hips::mpi {

/// The host's function of this name, of the type of ours: for an MPI whose handles we cannot read, and for
/// requests that are none of ours.
template <typename Function>
Function* fortran_function_of_host(const char* name) {
  return reinterpret_cast<Function*>(host_symbol(name));
}

/// A buffer as C says it: Fortran has addresses of its own for MPI_IN_PLACE and MPI_BOTTOM.
const void* buffer_to_c(const void* buffer);
/// A request, ours or the host's.
MPI_Request request_to_c(MPI_Fint request);
MPI_Fint request_to_fortran(MPI_Request request);
/// .TRUE. is what the host's compiler says.
MPI_Fint logical_to_fortran(int flag);

}  // namespace hips::mpi
