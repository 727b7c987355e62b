/* examples/allreduce.cpp in C: sums a vector over all ranks; needs no MPI and no NIC. */
#include <stdio.h>
#include <stdlib.h>

#include <hips/hips.h>

enum { kCount = 1000000 };

static void expect_ok(hips_status_t status) {
  if (status == HIPS_OK) return;
  fprintf(stderr, "allreduce: %s\n", hips_last_error());
  exit(1);
}

int main(void) {
  static float gradient[kCount];
  hips_comm_t comm;
  int rank, size;
  expect_ok(hips_comm_create(NULL, NULL, &comm));
  expect_ok(hips_comm_rank(comm, &rank));
  expect_ok(hips_comm_size(comm, &size));

  for (int i = 0; i < kCount; ++i) gradient[i] = (float)(rank + 1);
  expect_ok(hips_allreduce(HIPS_IN_PLACE, gradient, kCount, HIPS_FLOAT32, HIPS_SUM, comm));

  printf("rank %d of %d: every element is %g\n", rank, size, (double)gradient[0]);
  expect_ok(hips_comm_destroy(comm));
  return 0;
}
