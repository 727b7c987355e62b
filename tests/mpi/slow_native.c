/*
 * A native MPI whose MPI_Allreduce is slow, for preloading: waits SLOW_NATIVE_US microseconds after the real
 * one, on all ranks or on rank SLOW_NATIVE_RANK alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

typedef int allreduce_t(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

int PMPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  allreduce_t* next = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Allreduce");
  const int code = next(in, out, count, type, op, comm);
  const char* const slow = getenv("SLOW_NATIVE_RANK");
  const char* const rank = getenv(getenv("PMI_RANK") ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK");
  if (!slow || (rank && atoi(slow) == atoi(rank))) usleep((useconds_t)atoi(getenv("SLOW_NATIVE_US")));
  return code;
}
