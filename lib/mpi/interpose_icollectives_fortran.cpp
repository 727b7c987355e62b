#include <mpi.h>

#include <type_traits>

#include "lib/mpi/fortran.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/icollectives.hpp"

// Nothing but a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

using hips::mpi::buffer_to_c;
using hips::mpi::fortran_function_of_host;

static_assert(std::is_same_v<MPI_Fint, int>, "arrays of counts pass as they are");

namespace {

void* out_of(char* buffer) {
  return const_cast<void*>(buffer_to_c(buffer));
}

/// Has `start` make a request, and hands it and the code over.
template <typename Start>
void make(MPI_Fint* request, MPI_Fint* ierror, const Start& start) {
  MPI_Request made = hips::mpi::host()->no_request;
  const int code = start(&made);
  if (code == MPI_SUCCESS) *request = hips::mpi::request_to_fortran(made);
  if (ierror) *ierror = code;
}

}  // namespace

extern "C" {

HIPS_API void mpi_ibarrier_(const MPI_Fint* comm, MPI_Fint* request, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_ibarrier_)>("pmpi_ibarrier_");
    next(comm, request, ierror);
    return;
  }
  make(request, ierror, [&](MPI_Request* made) { return hips::mpi::ibarrier(mpi->Comm_f2c(*comm), made); });
}
HIPS_MPI_FORTRAN_NAMES(mpi_ibarrier, MPI_IBARRIER, MPI_Ibarrier);

HIPS_API void mpi_ibcast_(char* buffer, const MPI_Fint* count, const MPI_Fint* datatype, const MPI_Fint* root,
                          const MPI_Fint* comm, MPI_Fint* request, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_ibcast_)>("pmpi_ibcast_");
    next(buffer, count, datatype, root, comm, request, ierror);
    return;
  }
  make(request, ierror, [&](MPI_Request* made) {
    return hips::mpi::ibcast(out_of(buffer), *count, mpi->Type_f2c(*datatype), *root, mpi->Comm_f2c(*comm),
                             made);
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_ibcast, MPI_IBCAST, MPI_Ibcast);

HIPS_API void mpi_ireduce_(const char* sendbuf, char* recvbuf, const MPI_Fint* count,
                           const MPI_Fint* datatype, const MPI_Fint* op, const MPI_Fint* root,
                           const MPI_Fint* comm, MPI_Fint* request, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_ireduce_)>("pmpi_ireduce_");
    next(sendbuf, recvbuf, count, datatype, op, root, comm, request, ierror);
    return;
  }
  make(request, ierror, [&](MPI_Request* made) {
    return hips::mpi::ireduce(buffer_to_c(sendbuf), out_of(recvbuf), *count, mpi->Type_f2c(*datatype),
                              mpi->Op_f2c(*op), *root, mpi->Comm_f2c(*comm), made);
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_ireduce, MPI_IREDUCE, MPI_Ireduce);

HIPS_API void mpi_ireduce_scatter_(const char* sendbuf, char* recvbuf, const MPI_Fint* recvcounts,
                                   const MPI_Fint* datatype, const MPI_Fint* op, const MPI_Fint* comm,
                                   MPI_Fint* request, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next =
        fortran_function_of_host<decltype(mpi_ireduce_scatter_)>("pmpi_ireduce_scatter_");
    next(sendbuf, recvbuf, recvcounts, datatype, op, comm, request, ierror);
    return;
  }
  make(request, ierror, [&](MPI_Request* made) {
    return hips::mpi::ireduce_scatter(buffer_to_c(sendbuf), out_of(recvbuf), recvcounts,
                                      mpi->Type_f2c(*datatype), mpi->Op_f2c(*op), mpi->Comm_f2c(*comm), made);
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_ireduce_scatter, MPI_IREDUCE_SCATTER, MPI_Ireduce_scatter);

HIPS_API void mpi_ireduce_scatter_block_(const char* sendbuf, char* recvbuf, const MPI_Fint* recvcount,
                                         const MPI_Fint* datatype, const MPI_Fint* op, const MPI_Fint* comm,
                                         MPI_Fint* request, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next =
        fortran_function_of_host<decltype(mpi_ireduce_scatter_block_)>("pmpi_ireduce_scatter_block_");
    next(sendbuf, recvbuf, recvcount, datatype, op, comm, request, ierror);
    return;
  }
  make(request, ierror, [&](MPI_Request* made) {
    return hips::mpi::ireduce_scatter_block(buffer_to_c(sendbuf), out_of(recvbuf), *recvcount,
                                            mpi->Type_f2c(*datatype), mpi->Op_f2c(*op), mpi->Comm_f2c(*comm),
                                            made);
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_ireduce_scatter_block, MPI_IREDUCE_SCATTER_BLOCK, MPI_Ireduce_scatter_block);

HIPS_API void mpi_iallgather_(const char* sendbuf, const MPI_Fint* sendcount, const MPI_Fint* sendtype,
                              char* recvbuf, const MPI_Fint* recvcount, const MPI_Fint* recvtype,
                              const MPI_Fint* comm, MPI_Fint* request, MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_iallgather_)>("pmpi_iallgather_");
    next(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request, ierror);
    return;
  }
  make(request, ierror, [&](MPI_Request* made) {
    return hips::mpi::iallgather(buffer_to_c(sendbuf), *sendcount, mpi->Type_f2c(*sendtype), out_of(recvbuf),
                                 *recvcount, mpi->Type_f2c(*recvtype), mpi->Comm_f2c(*comm), made);
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_iallgather, MPI_IALLGATHER, MPI_Iallgather);

HIPS_API void mpi_iallgatherv_(const char* sendbuf, const MPI_Fint* sendcount, const MPI_Fint* sendtype,
                               char* recvbuf, const MPI_Fint* recvcounts, const MPI_Fint* displs,
                               const MPI_Fint* recvtype, const MPI_Fint* comm, MPI_Fint* request,
                               MPI_Fint* ierror) {
  const hips::mpi::Host* mpi = hips::mpi::host();
  if (!mpi) {
    static auto* const next = fortran_function_of_host<decltype(mpi_iallgatherv_)>("pmpi_iallgatherv_");
    next(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request, ierror);
    return;
  }
  make(request, ierror, [&](MPI_Request* made) {
    return hips::mpi::iallgatherv(buffer_to_c(sendbuf), *sendcount, mpi->Type_f2c(*sendtype), out_of(recvbuf),
                                  recvcounts, displs, mpi->Type_f2c(*recvtype), mpi->Comm_f2c(*comm), made);
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_iallgatherv, MPI_IALLGATHERV, MPI_Iallgatherv);
}
