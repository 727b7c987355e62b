/* Preloaded into a program: an MPI_Allreduce whose last rank gets one element of large vectors wrong. */
#include <mpi.h>

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int status = PMPI_Allreduce(in, out, count, type, op, comm);
  int rank, size;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  if (count == 400 * 120 && rank == size - 1) ((float*)out)[count / 2] += 1;
  return status;
}
