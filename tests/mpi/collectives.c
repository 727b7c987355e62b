/*
 * An ordinary MPI program: seeded random programs of all collectives that HiPS supports, blocking ones and
 * non-blocking ones that are outstanding together with messages, on several communicators, with types that
 * have gaps, different types of one signature, predefined and user operations, in place and not, counts of
 * zero. Types are freed as soon as a call has been made. Every element is compared with the expected value.
 *
 * collectives SEED PROGRAMS differ|alike
 *
 * "differ": types differ between ranks, and communicators are freed while their calls are outstanding. Open
 * MPI 4.1 splits vectors by the count that each rank passed, and then hangs; it also frees a communicator
 * that its own calls still need.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/collective_calls.h"

enum { kSteps = 40, kMost = 16 };

static int world_size, types_differ;
static long num_by_function; /* non-blocking calls that HiPS supports, by the function of this program */

/* The same numbers on all ranks of the world. */
static unsigned long long state;
static unsigned draw(unsigned below) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(state >> 33) % below;
}
/* Numbers of this rank alone: ranks complete their requests in different ways. */
static unsigned long long own_state;
static unsigned draw_own(unsigned below) {
  own_state = own_state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(own_state >> 33) % below;
}

/* Outstanding: a call, or a message from one rank to the next. */
struct Pending {
  int used, is_call, token, got, from;
  struct Call call;
};
static struct Pending pending[kMost];
static MPI_Request requests[2 * kMost]; /* two for each: of the call or the receive, and of the send */

static struct Call draw_call(MPI_Comm comm) {
  static const int kCounts[] = {0, 1, 3, 8, 100, 1009, 20000};
  struct Call call;
  memset(&call, 0, sizeof call);
  call.comm = comm;
  call.kind = (enum CallKind)draw(kNumCallKinds);
  call.which = (int)draw(4);
  call.salt = (int)draw(1000);
  call.in_place = draw(3) == 0;
  call.root_draw = draw(1000);
  call.shapes = draw(1000);
  call.count = kCounts[draw(7)];
  call.cut = draw(1000);
  call.absolute = draw(4) == 0;
  call.types_differ = types_differ;
  return call;
}

static void ended(int i) {
  struct Pending* const one = &pending[i];
  if (!one->used || requests[2 * i] != MPI_REQUEST_NULL || requests[2 * i + 1] != MPI_REQUEST_NULL) return;
  one->used = 0;
  if (one->is_call)
    check_call(&one->call);
  else
    expect(&one->call, "message", 0, one->got, one->token - world_size * calls_rank + world_size * one->from);
}

/* Completes some outstanding requests by one of MPI's functions. */
static void complete_some(void) {
  int indices[2 * kMost], num = 0, flag, i;
  switch (draw_own(5)) {
    case 0:
      MPI_Testsome(2 * kMost, requests, &num, indices, MPI_STATUSES_IGNORE);
      break;
    case 1:
      MPI_Waitsome(2 * kMost, requests, &num, indices, MPI_STATUSES_IGNORE);
      break;
    case 2:
      MPI_Waitany(2 * kMost, requests, &i, MPI_STATUS_IGNORE);
      break;
    case 3:
      MPI_Testall(2 * kMost, requests, &flag, MPI_STATUSES_IGNORE);
      break;
    default:
      MPI_Wait(&requests[draw_own(2 * kMost)], MPI_STATUS_IGNORE);
      break;
  }
  for (i = 0; i < kMost; ++i) ended(i);
}

/* Whether HiPS delegates a call to native MPI on a communicator that it supports. Once it has been made. */
static int is_delegated(const struct Call* call) {
  int r, total = 0;
  if (call->size == 1) return 1;
  if (call->kind == kBarrier) return 0;
  if (call->kind == kBcast) return call->count == 0;
  if (call->kind == kReduce || call->kind == kAllreduce) return call->count == 0;
  for (r = 0; r < call->size; ++r) total += call->counts[r];
  return total == 0;
}

/* Whether a call reduces by the function of this program, which a progress thread of HiPS must not call. */
static int is_by_function(const struct Call* call) {
  const int reduces = call->kind == kReduce || call->kind == kAllreduce ||
                      call->kind == kReduceScatterBlock || call->kind == kReduceScatter;
  return reduces && call->which == 3;
}

/* Completes the outstanding calls of a communicator, or only those that HiPS delegates to native MPI. */
static void complete_on(MPI_Comm comm, int only_delegated) {
  int i;
  for (i = 0; i < kMost; ++i) {
    if (!pending[i].used || !pending[i].is_call || pending[i].call.comm != comm) continue;
    if (only_delegated && !is_delegated(&pending[i].call)) continue;
    MPI_Wait(&requests[2 * i], MPI_STATUS_IGNORE);
    ended(i);
  }
}

static int free_slot(void) {
  int i;
  for (i = 0; i < kMost; ++i)
    if (!pending[i].used) return i;
  MPI_Waitall(2 * kMost, requests, MPI_STATUSES_IGNORE);
  for (i = 0; i < kMost; ++i) ended(i);
  return 0;
}

static void one_step(MPI_Comm comm, int step) {
  const unsigned form = draw(8);
  struct Call call = draw_call(comm);
  if (form < 3) {
    make_call(&call, NULL);
    check_call(&call);
  } else {
    const int i = free_slot();
    struct Pending* const one = &pending[i];
    one->used = 1;
    one->call = call;
    one->is_call = form < 7;
    if (one->is_call) {
      make_call(&one->call, &requests[2 * i]);
      num_by_function += is_by_function(&one->call) && !is_delegated(&one->call);
    } else {
      const int to = (calls_rank + 1) % world_size;
      one->from = (calls_rank + world_size - 1) % world_size;
      one->token = world_size * calls_rank + call.salt;
      MPI_Irecv(&one->got, 1, MPI_INT, one->from, step, MPI_COMM_WORLD, &requests[2 * i]);
      MPI_Isend(&one->token, 1, MPI_INT, to, step, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
  }
  if (draw_own(3) == 0) complete_some();
}

static void run_program(void) {
  MPI_Comm comms[4];
  int step, i;
  comms[0] = MPI_COMM_WORLD;
  comms[1] = MPI_COMM_SELF;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]);
  MPI_Comm_split(MPI_COMM_WORLD, calls_rank % 2, -calls_rank, &comms[3]);
  /* Without a first blocking call native MPI executes the non-blocking ones. */
  for (i = 0; i < 4; ++i) {
    int one = 1;
    if (types_differ || draw(2)) MPI_Bcast(&one, 1, MPI_INT, 0, comms[i]);
  }
  for (step = 0; step < kSteps; ++step) one_step(comms[draw(4)], step);
  /* While calls of HiPS are outstanding; with its own Open MPI 4.1 crashes. */
  for (i = 2; i < 4; ++i) {
    complete_on(comms[i], types_differ);
    MPI_Comm_free(&comms[i]);
  }
  if (draw_own(2)) complete_some();
  MPI_Waitall(2 * kMost, requests, MPI_STATUSES_IGNORE);
  for (i = 0; i < kMost; ++i) ended(i);
}

int main(int argc, char** argv) {
  const unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  const int programs = argc > 2 ? atoi(argv[2]) : 10;
  int program, i;
  long all_wrong = 0;
  types_differ = argc > 3 && strcmp(argv[3], "differ") == 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &calls_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Op_create(user_max, 1, &calls_user_op);
  for (i = 0; i < 2 * kMost; ++i) requests[i] = MPI_REQUEST_NULL;
  for (program = 0; program < programs; ++program) {
    state = seed + (unsigned)program * 977;
    own_state = state + (unsigned)calls_rank * 7919;
    run_program();
  }
  /* The profiling name is native MPI's function, which nothing intercepts. */
  PMPI_Allreduce(&num_wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (calls_rank == 0) {
    printf("non-blocking by a function %ld\n", num_by_function);
    printf("programs %d calls %ld wrong %ld\n", programs, num_calls, all_wrong);
  }
  MPI_Op_free(&calls_user_op);
  MPI_Finalize();
  return all_wrong != 0;
}
