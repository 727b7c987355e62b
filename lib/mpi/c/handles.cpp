// MPI_Op_free and MPI_Type_free of C.

#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/native/local_reduction.hpp"
#include "lib/mpi/signatures.hpp"

extern "C" {

#define HIPS_FREE_FUNCTION(Name, name, NAME, handle)                       \
  HIPS_API int MPI_##Name(HIPS_PARAMETER_OF_C(handle)) {                   \
    if (hips::mpi::name(handle)) return MPI_SUCCESS;                       \
    static constinit hips::mpi::NativeFunction<decltype(MPI_##Name)> next; \
    return next.get("PMPI_" #Name)(handle);                                \
  }
#include "lib/mpi/signatures.def"
}
