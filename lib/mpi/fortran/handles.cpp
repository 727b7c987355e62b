// MPI_Op_free and MPI_Type_free of Fortran: of all bindings for Open MPI, of mpi_f08 for MPICH, whose other bindings call
// the functions of C.

#include <mpi.h>

#include "lib/mpi/fortran/arguments.hpp"
#include "lib/mpi/native/local_reduction.hpp"

// Only a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace mpi = hips::mpi;

namespace {

bool op_free(MPI_Fint* op) {
  MPI_Op of_c = mpi::FromFortran::op(op);
  if (!mpi::op_free(&of_c)) return false;
  *op = mpi::op_to_fortran(of_c);
  return true;
}

bool type_free(MPI_Fint* type) {
  MPI_Datatype of_c = mpi::FromFortran::type(type);
  if (!mpi::type_free(&of_c)) return false;
  *type = mpi::type_to_fortran(of_c);
  return true;
}

}  // namespace

extern "C" {

// Handles of an MPI of another ABI are not read: HiPS has no reduction there.
#define HIPS_FREE_FUNCTION(Name, name, NAME, handle)                                       \
  HIPS_API void HIPS_FORTRAN(name)(HIPS_PARAMETER_OF_FORTRAN(handle), MPI_Fint * ierror) { \
    if (!mpi::LocalReduction::any() || !name(handle)) {                                    \
      static constinit mpi::NativeFortran<decltype(HIPS_FORTRAN(name))> next;              \
      return next.get(HIPS_NATIVE_FORTRAN(name))(handle, ierror);                          \
    }                                                                                      \
    if (ierror) *ierror = MPI_SUCCESS;                                                     \
  }                                                                                        \
  HIPS_FORTRAN_NAMES(mpi_##name, MPI_##NAME, MPI_##Name)
#include "lib/mpi/signatures.def"
}
