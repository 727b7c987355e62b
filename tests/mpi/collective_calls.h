/*
 * Collective calls of random kind, size and memory layout, blocking or not. Every element of their results is
 * compared with the expected value. For programs that do not use HiPS themselves.
 */
#pragma once

#include <mpi.h>

enum { kMaxRanks = 64, kGuard = 0x5a5a5a5a };

enum CallKind {
  kBarrier,
  kBcast,
  kReduce,
  kAllreduce,
  kReduceScatterBlock,
  kReduceScatter,
  kAllgather,
  kAllgatherv,
  kNumCallKinds
};

/* How elements lie in memory: consecutive, with gaps, or in reverse order. */
enum Shape { kPlain, kStrided, kReversed, kNumShapes };
struct Memory {
  MPI_Datatype type; /* pieces of `each` ints */
  int each, stride;
  enum Shape shape;
};

/* Equal on all ranks of `comm`, except for the fields below that are derived for each rank. */
struct Call {
  enum CallKind kind;
  MPI_Comm comm;
  int which, salt, in_place, count, absolute, types_differ;
  unsigned root_draw, shapes, cut;
  /* Of this rank, from make_call() to check_call(). */
  int rank, size, root, end;
  int counts[kMaxRanks], places[kMaxRanks];
  MPI_Count large_counts[kMaxRanks]; /* the same, for functions with large counts */
  MPI_Aint large_places[kMaxRanks];
  int *in, *out;
  struct Memory sends, takes;
};

extern int calls_rank; /* in the world, for messages */
extern long num_wrong, num_calls;
extern MPI_Op calls_user_op; /* of user_max(); the program creates it */

void user_max(void* in, void* inout, int* count, MPI_Datatype* type);

/* Makes the call, a non-blocking one where `request` is not null. */
void make_call(struct Call* call, MPI_Request* request);
/* For a call that has ended: compares its results, and frees the buffers. */
void check_call(struct Call* call);
/* Counts a wrong result, and prints the first few. */
void expect(const struct Call* call, const char* what, int i, int is, int right);
