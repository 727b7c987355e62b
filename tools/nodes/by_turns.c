/* Times MPI_Allreduce as a program under hips run finds it, and PMPI_Allreduce, which is native MPI's, by turns.
 *
 * by_turns FIRST LAST CALLS WARMUP ROUNDS OUTPUT: sizes from FIRST to LAST bytes, each four times the one before; after WARMUP
 * calls, ROUNDS blocks of CALLS calls of each; rank 0 writes {"SIZE": [seconds under hips run, natively], ...}, medians. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

static double block(allreduce call, const float* in, float* out, int count, long calls) {
  PMPI_Barrier(MPI_COMM_WORLD);
  const double begin = PMPI_Wtime();
  for (long i = 0; i < calls; ++i) call(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  double mine = (PMPI_Wtime() - begin) / (double)calls, most = 0;
  PMPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 7) {
    if (rank == 0) fprintf(stderr, "usage: by_turns FIRST LAST CALLS WARMUP ROUNDS OUTPUT\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const long first = atol(argv[1]), last = atol(argv[2]), calls = atol(argv[3]), warmup = atol(argv[4]),
             rounds = atol(argv[5]);
  float* in = calloc(1, (size_t)last);
  float* out = calloc(1, (size_t)last);
  double* seconds[2] = {calloc((size_t)rounds, sizeof(double)), calloc((size_t)rounds, sizeof(double))};
  FILE* file = rank == 0 ? fopen(argv[6], "w") : NULL;
  if (!in || !out || !seconds[0] || !seconds[1] || (rank == 0 && !file)) {
    fprintf(stderr, "by_turns: no memory, or cannot write %s\n", argv[6]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (file) fprintf(file, "{");
  for (long bytes = first; bytes <= last; bytes *= 4) {
    const int count = (int)(bytes / (long)sizeof(float));
    (void)block(MPI_Allreduce, in, out, count, warmup);
    (void)block(PMPI_Allreduce, in, out, count, 2);
    for (long round = 0; round < rounds; ++round) {
      for (int turn = 0; turn < 2; ++turn) {
        const int native = turn == round % 2;
        seconds[native][round] = block(native ? PMPI_Allreduce : MPI_Allreduce, in, out, count, calls);
      }
    }
    for (int which = 0; which < 2; ++which) qsort(seconds[which], (size_t)rounds, sizeof(double), by_value);
    if (file)
      fprintf(file, "%s\"%ld\": [%.9g, %.9g]", bytes == first ? "" : ", ", bytes, seconds[0][rounds / 2],
              seconds[1][rounds / 2]);
  }
  if (file) {
    fprintf(file, "}\n");
    fclose(file);
  }
  MPI_Finalize();
  return 0;
}
