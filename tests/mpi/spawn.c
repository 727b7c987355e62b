/*
 * Starts as many processes as it has ranks, which `hips run` does not know of, and reduces with them. Exits
 * with status 0; rank 0 prints what a report should contain.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Comm others, all;
  int rank, size, num_all, value, sum = 0, wrong;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&others);
  const int is_child = others != MPI_COMM_NULL;
  if (!is_child)
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
                   MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(others, is_child, &all);
  MPI_Comm_size(all, &num_all);
  MPI_Comm_rank(all, &value);
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, all);
  wrong = num_all != 2 * size || value != num_all * (num_all - 1) / 2;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  wrong += sum != size * (size - 1) / 2;
  if (rank == 0 && !is_child) {
    printf("expect taken 1 4\n");
    printf("expect delegated 1 communicator with processes of another MPI_COMM_WORLD\n");
    printf("wrong %d\n", wrong);
  }
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&others);
  MPI_Finalize();
  return wrong != 0;
}
