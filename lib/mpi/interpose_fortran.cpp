#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include "lib/mpi/allreduce.hpp"
#include "lib/mpi/fortran.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/iallreduce.hpp"
#include "lib/mpi/interpose_requests.hpp"

// Nothing but a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

using hips::mpi::buffer_to_c;
using hips::mpi::fortran_function_of_host;

namespace {

hips::mpi::ReductionCall to_c(const hips::mpi::Host& mpi, const char* sendbuf, char* recvbuf,
                              const MPI_Fint* count, const MPI_Fint* datatype, const MPI_Fint* op,
                              const MPI_Fint* comm) {
  return {buffer_to_c(sendbuf),
          const_cast<void*>(buffer_to_c(recvbuf)),
          *count,
          mpi.Type_f2c(*datatype),
          mpi.Op_f2c(*op),
          mpi.Comm_f2c(*comm)};
}

}  // namespace

extern "C" {

HIPS_API void mpi_allreduce_(const char* sendbuf, char* recvbuf, const MPI_Fint* count,
                             const MPI_Fint* datatype, const MPI_Fint* op, const MPI_Fint* comm,
                             MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_allreduce_)>("pmpi_allreduce_");
    next(sendbuf, recvbuf, count, datatype, op, comm, ierror);
    return;
  }
  const auto call = to_c(*mpi, sendbuf, recvbuf, count, datatype, op, comm);
  const int code = hips::mpi::allreduce(call.in, call.out, call.count, call.type, call.op, call.comm);
  if (ierror) *ierror = code;
}
HIPS_MPI_FORTRAN_NAMES(mpi_allreduce, MPI_ALLREDUCE, MPI_Allreduce);

HIPS_API void mpi_iallreduce_(const char* sendbuf, char* recvbuf, const MPI_Fint* count,
                              const MPI_Fint* datatype, const MPI_Fint* op, const MPI_Fint* comm,
                              MPI_Fint* request, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_iallreduce_)>("pmpi_iallreduce_");
    next(sendbuf, recvbuf, count, datatype, op, comm, request, ierror);
    return;
  }
  MPI_Request made = mpi->no_request;
  const int code = hips::mpi::iallreduce(to_c(*mpi, sendbuf, recvbuf, count, datatype, op, comm), &made);
  if (code == MPI_SUCCESS) *request = hips::mpi::request_to_fortran(made);
  if (ierror) *ierror = code;
}
HIPS_MPI_FORTRAN_NAMES(mpi_iallreduce, MPI_IALLREDUCE, MPI_Iallreduce);

#if MPI_VERSION >= 4
#define HIPS_MPI_ALLREDUCE_INIT mpi_allreduce_init_
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define HIPS_MPI_ALLREDUCE_INIT mpix_allreduce_init_
#endif

#ifdef HIPS_MPI_ALLREDUCE_INIT
HIPS_API void HIPS_MPI_ALLREDUCE_INIT(const char* sendbuf, char* recvbuf, const MPI_Fint* count,
                                      const MPI_Fint* datatype, const MPI_Fint* op, const MPI_Fint* comm,
                                      const MPI_Fint* info, MPI_Fint* request, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    using Function = decltype(HIPS_MPI_ALLREDUCE_INIT);
    static auto* const plain = fortran_function_of_host<Function>("pmpi_allreduce_init_");
    static auto* const next = plain ? plain : fortran_function_of_host<Function>("pmpix_allreduce_init_");
    next(sendbuf, recvbuf, count, datatype, op, comm, info, request, ierror);
    return;
  }
  MPI_Request made = mpi->no_request;
  const int code = hips::mpi::allreduce_init(hips::mpi::allreduce_init_of_host(),
                                             to_c(*mpi, sendbuf, recvbuf, count, datatype, op, comm),
                                             mpi->Info_f2c(*info), &made);
  if (code == MPI_SUCCESS) *request = hips::mpi::request_to_fortran(made);
  if (ierror) *ierror = code;
}
#endif
#if MPI_VERSION >= 4
HIPS_MPI_FORTRAN_NAMES(mpi_allreduce_init, MPI_ALLREDUCE_INIT, MPI_Allreduce_init);
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
HIPS_MPI_FORTRAN_NAMES(mpix_allreduce_init, MPIX_ALLREDUCE_INIT, MPIX_Allreduce_init);
#endif
}
