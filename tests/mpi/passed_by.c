/* A tool, for preloading, that starts MPI by its profiling name, so that the interposer does not see it start. */
#include <mpi.h>

int MPI_Init(int* argc, char*** argv) {
  return PMPI_Init(argc, argv);
}
