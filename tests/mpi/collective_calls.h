/*
 * Collective calls of whatever kind, size and place chance chose: made, blocking or not, and compared with
 * what they have to give, element by element. For programs that know nothing of HiPS.
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

/* How elements lie in memory: one behind the other, with gaps, or the other way round. */
enum Shape { kPlain, kStrided, kReversed, kNumShapes };
struct Memory {
  MPI_Datatype type; /* `each` ints a piece */
  int each, stride;
  enum Shape shape;
};

/* The same on all ranks of `comm`, but for what is derived from it below. */
struct Call {
  enum CallKind kind;
  MPI_Comm comm;
  int which, salt, in_place, count, absolute, types_differ;
  unsigned root_draw, shapes, cut;
  /* Of this rank, from make_call() to check_call(). */
  int rank, size, root, end;
  int counts[kMaxRanks], places[kMaxRanks];
  MPI_Count large_counts[kMaxRanks]; /* the same, for functions of large counts */
  MPI_Aint large_places[kMaxRanks];
  int *in, *out;
  struct Memory sends, takes;
};

extern int calls_rank; /* in the world, for messages */
extern long num_wrong, num_calls;
extern MPI_Op calls_user_op; /* of user_max(), to be made by the program */

void user_max(void* in, void* inout, int* count, MPI_Datatype* type);

/* Makes the call: a non-blocking one where `request` is not null. */
void make_call(struct Call* call, MPI_Request* request);
/* Once it has ended: compares, and frees the buffers. */
void check_call(struct Call* call);
/* Counts a wrong result, and says so of the first few. */
void expect(const struct Call* call, const char* what, int i, int is, int right);
