#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/allreduce.hpp"

extern "C" HIPS_API int MPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
                                      MPI_Op op, MPI_Comm comm) {
  return hips::mpi::allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}
