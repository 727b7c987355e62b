#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/icollectives.hpp"

extern "C" {

HIPS_API int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return hips::mpi::ibarrier(comm, request);
}

HIPS_API int MPI_Ibcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
                        MPI_Request* request) {
  return hips::mpi::ibcast(buffer, count, datatype, root, comm, request);
}

HIPS_API int MPI_Ireduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                         int root, MPI_Comm comm, MPI_Request* request) {
  return hips::mpi::ireduce(sendbuf, recvbuf, count, datatype, op, root, comm, request);
}

HIPS_API int MPI_Ireduce_scatter(const void* sendbuf, void* recvbuf, const int recvcounts[],
                                 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return hips::mpi::ireduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, request);
}

HIPS_API int MPI_Ireduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                       MPI_Request* request) {
  return hips::mpi::ireduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, request);
}

HIPS_API int MPI_Iallgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                            int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return hips::mpi::iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
}

HIPS_API int MPI_Iallgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                             const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
                             MPI_Request* request) {
  return hips::mpi::iallgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                                request);
}
}
