// Open MPI's Fortran bindings call PMPI_Allreduce and so pass by a wrapper of the C function: each binding
// needs wrappers of its own. All of them pass addresses; mpif.h and the mpi module call mpi_allreduce_, the
// mpi_f08 module calls mpi_allreduce_f08_ (a handle there is a struct of one INTEGER, and ierror may be
// absent), and the other names are those under which other compilers call the same function.

#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/allreduce.hpp"
#include "lib/mpi/host.hpp"

namespace {

const void* to_c(const void* buffer) {
  switch (hips::mpi::fortran_sentinel(buffer)) {
    case hips::mpi::Sentinel::kInPlace:
      return MPI_IN_PLACE;
    case hips::mpi::Sentinel::kBottom:
      return MPI_BOTTOM;
    case hips::mpi::Sentinel::kNone:
      break;
  }
  return buffer;
}

}  // namespace

extern "C" {

HIPS_API void mpi_allreduce_(const char* sendbuf, char* recvbuf, const MPI_Fint* count,
                             const MPI_Fint* datatype, const MPI_Fint* op, const MPI_Fint* comm,
                             MPI_Fint* ierror);

void mpi_allreduce_(const char* sendbuf, char* recvbuf, const MPI_Fint* count, const MPI_Fint* datatype,
                    const MPI_Fint* op, const MPI_Fint* comm, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    // Another MPI, whose handles we cannot read.
    static auto* const next =
        reinterpret_cast<decltype(&mpi_allreduce_)>(hips::mpi::host_symbol("pmpi_allreduce_"));
    next(sendbuf, recvbuf, count, datatype, op, comm, ierror);
    return;
  }
  const int code = hips::mpi::allreduce(to_c(sendbuf), const_cast<void*>(to_c(recvbuf)), *count,
                                        mpi->Type_f2c(*datatype), mpi->Op_f2c(*op), mpi->Comm_f2c(*comm));
  if (ierror) *ierror = code;
}

#define HIPS_MPI_FORTRAN_NAME(name)                                                                       \
  HIPS_API void name(const char* sendbuf, char* recvbuf, const MPI_Fint* count, const MPI_Fint* datatype, \
                     const MPI_Fint* op, const MPI_Fint* comm, MPI_Fint* ierror)                          \
      __attribute__((alias("mpi_allreduce_")))

HIPS_MPI_FORTRAN_NAME(mpi_allreduce);
HIPS_MPI_FORTRAN_NAME(mpi_allreduce__);
HIPS_MPI_FORTRAN_NAME(MPI_ALLREDUCE);
HIPS_MPI_FORTRAN_NAME(MPI_Allreduce_f);
HIPS_MPI_FORTRAN_NAME(MPI_Allreduce_f08);
HIPS_MPI_FORTRAN_NAME(mpi_allreduce_f08_);
}
