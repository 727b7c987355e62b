/*
 * The functions of MPI 4 for large counts that collective_calls.c does not call: an allreduce in all three
 * forms, and a count beyond any int, of elements without data. Exits with status 0; rank 0 prints what a
 * report should contain.
 */
#include <mpi.h>
#include <stdio.h>

enum { kCount = 1000, kStarts = 2 };

static int rank, size, wrong;
static int in[kCount], out[kCount];

static void fill(int salt) {
  for (int i = 0; i < kCount; ++i) {
    in[i] = (rank + 1) * i + salt;
    out[i] = -1;
  }
}

static void check(int salt) {
  for (int i = 0; i < kCount; ++i) wrong += out[i] != size * (size + 1) / 2 * i + size * salt;
}

int main(int argc, char** argv) {
  const MPI_Count count = kCount, no_int = 3000000000;
  MPI_Datatype empty;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  fill(1);
  MPI_Allreduce_c(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(1);

  fill(2);
  MPI_Iallreduce_c(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(2);

  MPI_Allreduce_init_c(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < kStarts; ++i) {
    fill(3 + i);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(3 + i);
  }
  MPI_Request_free(&request);

  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  MPI_Bcast_c(out, no_int, empty, 0, MPI_COMM_WORLD);
  MPI_Type_free(&empty);

  if (rank == 0) {
    printf("expect taken %d %d\n", 2 + kStarts, (2 + kStarts) * kCount * (int)sizeof(int));
    printf("expect delegated 1 MPI_Bcast: no data\n");
    printf("wrong %d\n", wrong);
  }
  MPI_Finalize();
  return wrong != 0;
}
