/* Times MPI_Allreduce of float sums: a line "bytes median_us" for each size. A plain MPI program, so that the
 * native MPI and HiPS run the same one. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  enum { kMaxCalls = 1000 };
  static double seconds[kMaxCalls];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i < argc; ++i) {
    const long bytes = atol(argv[i]);
    const int count = (int)(bytes / (long)sizeof(float));
    const int calls = bytes <= 65536 ? 200 : bytes <= 1048576 ? 40 : 8;
    float* in = malloc((size_t)bytes);
    float* out = malloc((size_t)bytes);
    for (int k = 0; k < count; ++k) in[k] = (float)(k % 7);
    for (int call = -2; call < calls; ++call) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      if (call >= 0) seconds[call] = MPI_Wtime() - begin;
    }
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int k = 0; k < count; ++k) {
      if (out[k] != (float)(size * (k % 7))) {
        fprintf(stderr, "element %d of %d is %g\n", k, count, (double)out[k]);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    }
    qsort(seconds, (size_t)calls, sizeof *seconds, ascending);
    if (rank == 0) printf("%ld %.3f\n", bytes, seconds[calls / 2] * 1e6);
    free(in);
    free(out);
  }
  MPI_Finalize();
  return 0;
}
