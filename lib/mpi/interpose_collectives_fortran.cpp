#include <mpi.h>

#include <type_traits>

#include "lib/mpi/collectives.hpp"
#include "lib/mpi/fortran.hpp"
#include "lib/mpi/host.hpp"

// Nothing but a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

using hips::mpi::buffer_to_c;
using hips::mpi::fortran_function_of_host;

static_assert(std::is_same_v<MPI_Fint, int>, "arrays of counts pass as they are");

namespace {

void* out_of(char* buffer) {
  return const_cast<void*>(buffer_to_c(buffer));
}

}  // namespace

extern "C" {

HIPS_API void mpi_barrier_(const MPI_Fint* comm, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_barrier_)>("pmpi_barrier_");
    next(comm, ierror);
    return;
  }
  const int code = hips::mpi::barrier(mpi->Comm_f2c(*comm));
  if (ierror) *ierror = code;
}
HIPS_MPI_FORTRAN_NAMES(mpi_barrier, MPI_BARRIER, MPI_Barrier);

HIPS_API void mpi_bcast_(char* buffer, const MPI_Fint* count, const MPI_Fint* datatype, const MPI_Fint* root,
                         const MPI_Fint* comm, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_bcast_)>("pmpi_bcast_");
    next(buffer, count, datatype, root, comm, ierror);
    return;
  }
  const int code =
      hips::mpi::bcast(out_of(buffer), *count, mpi->Type_f2c(*datatype), *root, mpi->Comm_f2c(*comm));
  if (ierror) *ierror = code;
}
HIPS_MPI_FORTRAN_NAMES(mpi_bcast, MPI_BCAST, MPI_Bcast);

HIPS_API void mpi_reduce_(const char* sendbuf, char* recvbuf, const MPI_Fint* count, const MPI_Fint* datatype,
                          const MPI_Fint* op, const MPI_Fint* root, const MPI_Fint* comm, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_reduce_)>("pmpi_reduce_");
    next(sendbuf, recvbuf, count, datatype, op, root, comm, ierror);
    return;
  }
  const int code = hips::mpi::reduce(buffer_to_c(sendbuf), out_of(recvbuf), *count, mpi->Type_f2c(*datatype),
                                     mpi->Op_f2c(*op), *root, mpi->Comm_f2c(*comm));
  if (ierror) *ierror = code;
}
HIPS_MPI_FORTRAN_NAMES(mpi_reduce, MPI_REDUCE, MPI_Reduce);

HIPS_API void mpi_reduce_scatter_(const char* sendbuf, char* recvbuf, const MPI_Fint* recvcounts,
                                  const MPI_Fint* datatype, const MPI_Fint* op, const MPI_Fint* comm,
                                  MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_reduce_scatter_)>("pmpi_reduce_scatter_");
    next(sendbuf, recvbuf, recvcounts, datatype, op, comm, ierror);
    return;
  }
  const int code =
      hips::mpi::reduce_scatter(buffer_to_c(sendbuf), out_of(recvbuf), recvcounts, mpi->Type_f2c(*datatype),
                                mpi->Op_f2c(*op), mpi->Comm_f2c(*comm));
  if (ierror) *ierror = code;
}
HIPS_MPI_FORTRAN_NAMES(mpi_reduce_scatter, MPI_REDUCE_SCATTER, MPI_Reduce_scatter);

HIPS_API void mpi_reduce_scatter_block_(const char* sendbuf, char* recvbuf, const MPI_Fint* recvcount,
                                        const MPI_Fint* datatype, const MPI_Fint* op, const MPI_Fint* comm,
                                        MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next =
        fortran_function_of_host<decltype(mpi_reduce_scatter_block_)>("pmpi_reduce_scatter_block_");
    next(sendbuf, recvbuf, recvcount, datatype, op, comm, ierror);
    return;
  }
  const int code =
      hips::mpi::reduce_scatter_block(buffer_to_c(sendbuf), out_of(recvbuf), *recvcount,
                                      mpi->Type_f2c(*datatype), mpi->Op_f2c(*op), mpi->Comm_f2c(*comm));
  if (ierror) *ierror = code;
}
HIPS_MPI_FORTRAN_NAMES(mpi_reduce_scatter_block, MPI_REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block);

HIPS_API void mpi_allgather_(const char* sendbuf, const MPI_Fint* sendcount, const MPI_Fint* sendtype,
                             char* recvbuf, const MPI_Fint* recvcount, const MPI_Fint* recvtype,
                             const MPI_Fint* comm, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_allgather_)>("pmpi_allgather_");
    next(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, ierror);
    return;
  }
  const int code =
      hips::mpi::allgather(buffer_to_c(sendbuf), *sendcount, mpi->Type_f2c(*sendtype), out_of(recvbuf),
                           *recvcount, mpi->Type_f2c(*recvtype), mpi->Comm_f2c(*comm));
  if (ierror) *ierror = code;
}
HIPS_MPI_FORTRAN_NAMES(mpi_allgather, MPI_ALLGATHER, MPI_Allgather);

HIPS_API void mpi_allgatherv_(const char* sendbuf, const MPI_Fint* sendcount, const MPI_Fint* sendtype,
                              char* recvbuf, const MPI_Fint* recvcounts, const MPI_Fint* displs,
                              const MPI_Fint* recvtype, const MPI_Fint* comm, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_allgatherv_)>("pmpi_allgatherv_");
    next(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, ierror);
    return;
  }
  const int code =
      hips::mpi::allgatherv(buffer_to_c(sendbuf), *sendcount, mpi->Type_f2c(*sendtype), out_of(recvbuf),
                            recvcounts, displs, mpi->Type_f2c(*recvtype), mpi->Comm_f2c(*comm));
  if (ierror) *ierror = code;
}
HIPS_MPI_FORTRAN_NAMES(mpi_allgatherv, MPI_ALLGATHERV, MPI_Allgatherv);
}
