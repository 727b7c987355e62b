/* A communicator from an MPI communicator, in C: hips_comm_create_mpi and every type and op. */
#include <stdio.h>
#include <stdlib.h>

#include <hips/mpi.h>

#define COUNT 1000

static int failures = 0;

static void check(hips_status_t status, const char* what) {
  if (status == HIPS_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, hips_status_string(status), hips_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

#define TEST_TYPE(T, TYPE)                                                                             \
  do {                                                                                                 \
    static T in[COUNT], out[COUNT];                                                                    \
    for (int i = 0; i < COUNT; ++i) in[i] = (T)(rank + i % 7);                                         \
    check(hips_allreduce(in, out, COUNT, TYPE, HIPS_SUM, comm), #T " sum");                            \
    for (int i = 0; i < COUNT; ++i) failures += out[i] != (T)(size * (size - 1) / 2 + size * (i % 7)); \
    check(hips_allreduce(HIPS_IN_PLACE, in, COUNT, TYPE, HIPS_MAX, comm), #T " max");                  \
    for (int i = 0; i < COUNT; ++i) failures += in[i] != (T)(size - 1 + i % 7);                        \
  } while (0)

int main(int argc, char** argv) {
  hips_comm_t comm = NULL;
  int rank = -1, size = 0, mpi_rank = -1;
  MPI_Comm reversed;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
  /* Ranks are those of the given communicator, not of the world. */
  MPI_Comm_split(MPI_COMM_WORLD, 0, -mpi_rank, &reversed);
  check(hips_comm_create_mpi(reversed, NULL, &comm), "create");
  MPI_Comm_free(&reversed);
  check(hips_comm_rank(comm, &rank), "rank");
  check(hips_comm_size(comm, &size), "size");
  failures += rank != size - 1 - mpi_rank;
  TEST_TYPE(int32_t, HIPS_INT32);
  TEST_TYPE(int64_t, HIPS_INT64);
  TEST_TYPE(int8_t, HIPS_INT8);
  TEST_TYPE(int16_t, HIPS_INT16);
  TEST_TYPE(uint8_t, HIPS_UINT8);
  TEST_TYPE(uint16_t, HIPS_UINT16);
  TEST_TYPE(uint32_t, HIPS_UINT32);
  TEST_TYPE(uint64_t, HIPS_UINT64);
  TEST_TYPE(float, HIPS_FLOAT32);
  TEST_TYPE(double, HIPS_FLOAT64);
  if (rank == 0) printf("%s\n", hips_comm_describe(comm));
  check(hips_comm_destroy(comm), "destroy");
  MPI_Finalize();
  if (failures != 0) fprintf(stderr, "rank %d: %d wrong\n", rank, failures);
  return failures != 0;
}
