// The functions of MPI 4 for large counts.

#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/allreduce.hpp"
#include "lib/mpi/collectives.hpp"
#include "lib/mpi/iallreduce.hpp"
#include "lib/mpi/icollectives.hpp"
#include "lib/mpi/interpose_requests.hpp"

#if MPI_VERSION >= 4

using hips::mpi::Count;
using hips::mpi::Counts;
using hips::mpi::Places;

extern "C" {

HIPS_API int MPI_Allreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                             MPI_Op op, MPI_Comm comm) {
  return hips::mpi::allreduce(sendbuf, recvbuf, Count::large(count), datatype, op, comm);
}

HIPS_API int MPI_Iallreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                              MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return hips::mpi::iallreduce({sendbuf, recvbuf, Count::large(count), datatype, op, comm}, request);
}

HIPS_API int MPI_Allreduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                                  MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return hips::mpi::allreduce_init(hips::mpi::allreduce_init_of_host(),
                                   {sendbuf, recvbuf, Count::large(count), datatype, op, comm}, info,
                                   request);
}

HIPS_API int MPI_Bcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return hips::mpi::bcast(buffer, Count::large(count), datatype, root, comm);
}

HIPS_API int MPI_Ibcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                          MPI_Request* request) {
  return hips::mpi::ibcast(buffer, Count::large(count), datatype, root, comm, request);
}

HIPS_API int MPI_Reduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                          MPI_Op op, int root, MPI_Comm comm) {
  return hips::mpi::reduce(sendbuf, recvbuf, Count::large(count), datatype, op, root, comm);
}

HIPS_API int MPI_Ireduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Op op, int root, MPI_Comm comm, MPI_Request* request) {
  return hips::mpi::ireduce(sendbuf, recvbuf, Count::large(count), datatype, op, root, comm, request);
}

HIPS_API int MPI_Reduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
                                  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return hips::mpi::reduce_scatter(sendbuf, recvbuf, Counts::large(recvcounts), datatype, op, comm);
}

HIPS_API int MPI_Ireduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
                                   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return hips::mpi::ireduce_scatter(sendbuf, recvbuf, Counts::large(recvcounts), datatype, op, comm, request);
}

HIPS_API int MPI_Reduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return hips::mpi::reduce_scatter_block(sendbuf, recvbuf, Count::large(recvcount), datatype, op, comm);
}

HIPS_API int MPI_Ireduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                         MPI_Request* request) {
  return hips::mpi::ireduce_scatter_block(sendbuf, recvbuf, Count::large(recvcount), datatype, op, comm,
                                          request);
}

HIPS_API int MPI_Allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                             MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return hips::mpi::allgather(sendbuf, Count::large(sendcount), sendtype, recvbuf, Count::large(recvcount),
                              recvtype, comm);
}

HIPS_API int MPI_Iallgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                              MPI_Request* request) {
  return hips::mpi::iallgather(sendbuf, Count::large(sendcount), sendtype, recvbuf, Count::large(recvcount),
                               recvtype, comm, request);
}

HIPS_API int MPI_Allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                              const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                              MPI_Comm comm) {
  return hips::mpi::allgatherv(sendbuf, Count::large(sendcount), sendtype, recvbuf, Counts::large(recvcounts),
                               Places::large(displs), recvtype, comm);
}

HIPS_API int MPI_Iallgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                               const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                               MPI_Comm comm, MPI_Request* request) {
  return hips::mpi::iallgatherv(sendbuf, Count::large(sendcount), sendtype, recvbuf,
                                Counts::large(recvcounts), Places::large(displs), recvtype, comm, request);
}
}

#endif
