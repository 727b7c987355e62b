#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/collectives.hpp"

extern "C" {

HIPS_API int MPI_Barrier(MPI_Comm comm) {
  return hips::mpi::barrier(comm);
}

HIPS_API int MPI_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return hips::mpi::bcast(buffer, count, datatype, root, comm);
}

HIPS_API int MPI_Reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                        int root, MPI_Comm comm) {
  return hips::mpi::reduce(sendbuf, recvbuf, count, datatype, op, root, comm);
}

HIPS_API int MPI_Reduce_scatter(const void* sendbuf, void* recvbuf, const int recvcounts[],
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return hips::mpi::reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

HIPS_API int MPI_Reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return hips::mpi::reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm);
}

HIPS_API int MPI_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return hips::mpi::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

HIPS_API int MPI_Allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                            const int recvcounts[], const int displs[], MPI_Datatype recvtype,
                            MPI_Comm comm) {
  return hips::mpi::allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}
}
