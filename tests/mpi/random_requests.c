/*
 * Random MPI programs: non-blocking collectives and persistent allreduces on three communicators and messages
 * between ranks are outstanding together, and are completed by random functions. Every result and status is
 * checked; rank 0 prints a hash of all results of allreduces, which is the same under any MPI.
 *
 * random_requests SEED PROGRAMS [MOST_PERSISTENT]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/collective_calls.h"

#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

enum { kMost = 24, kMaxCount = 40000 };

static int rank, size, wrong, most_persistent = 2;
static uint64_t hash = 14695981039346656037ull;

static uint64_t next_random(uint64_t* state) {
  *state += 0x9e3779b97f4a7c15ull;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static int below(uint64_t* state, int end) {
  return (int)(next_random(state) % (uint64_t)end);
}

static void complain(const char* what, int step) {
  if (wrong++ < 5) fprintf(stderr, "rank %d, step %d: %s\n", rank, step, what);
}

enum kind { kNone, kSum, kMax, kDerived, kUserOp, kSend, kReceive, kPersistent, kCollective };

struct op {
  enum kind kind;
  int count, in_place, source, tag, done;
  long *in, *out;
  MPI_Comm comm;
  struct Call call; /* of kCollective */
};

static MPI_Op user_sum;
static MPI_Datatype pair_type;

static void add_longs(void* in, void* inout, int* count, MPI_Datatype* type) {
  const int per = *type == pair_type ? 2 : 1;
  for (int i = 0; i < *count * per; ++i) ((long*)inout)[i] += ((long*)in)[i];
}

static long value_of(int from, int step, int slot, int i) {
  return (long)(from + 1) * (i % 1000 + 1) + step * 7 + slot;
}

static int random_count(uint64_t* shared) {
  static const int some[] = {0, 1, 2, 7, 100, 1000, 5000, kMaxCount};
  return some[below(shared, 8)];
}

static void start_collective(struct op* op, MPI_Request* request, uint64_t* shared, MPI_Comm* comms) {
  struct Call* const call = &op->call;
  memset(call, 0, sizeof *call);
  op->kind = kCollective;
  op->in = op->out = NULL;
  op->count = op->done = 0;
  call->kind = (enum CallKind)below(shared, kNumCallKinds);
  call->comm = comms[below(shared, 8) == 0 ? 2 : below(shared, 2)];
  call->which = below(shared, 4);
  call->salt = below(shared, 1000);
  call->in_place = below(shared, 2);
  call->count = random_count(shared);
  call->absolute = below(shared, 4) == 0;
  call->root_draw = (unsigned)below(shared, 1000);
  call->shapes = (unsigned)below(shared, 1000);
  call->cut = (unsigned)below(shared, 1000);
  make_call(call, request);
}

static void start_op(struct op* op, MPI_Request* request, int step, int slot, uint64_t* shared,
                     MPI_Comm* comms) {
  const int shift = 1 + below(shared, size > 1 ? size - 1 : 1);
  if (below(shared, 2)) {
    start_collective(op, request, shared, comms);
    return;
  }
  op->kind = kSum + below(shared, kSend);
  op->comm = comms[below(shared, 2)];
  op->count = random_count(shared);
  if (op->kind == kDerived) op->count &= ~1;
  op->in_place = below(shared, 2);
  op->tag = slot;
  op->done = 0;
  op->in = malloc(sizeof(long) * (size_t)(op->count + 1));
  op->out = malloc(sizeof(long) * (size_t)(op->count + 1));
  for (int i = 0; i < op->count; ++i) op->in[i] = value_of(rank, step, slot, i);
  memset(op->out, 0, sizeof(long) * (size_t)(op->count + 1));
  if (op->in_place) memcpy(op->out, op->in, sizeof(long) * (size_t)op->count);
  const void* const in = op->in_place ? MPI_IN_PLACE : op->in;
  switch (op->kind) {
    case kSum:
      MPI_Iallreduce(in, op->out, op->count, MPI_LONG, MPI_SUM, op->comm, request);
      break;
    case kMax:
      MPI_Iallreduce(in, op->out, op->count, MPI_LONG, MPI_MAX, op->comm, request);
      break;
    case kUserOp:
      MPI_Iallreduce(in, op->out, op->count, MPI_LONG, user_sum, op->comm, request);
      break;
    case kDerived:
      MPI_Iallreduce(in, op->out, op->count / 2, pair_type, user_sum, op->comm, request);
      break;
    default:
      /* Each rank sends to one and receives from another; the receive has a slot of its own. */
      op->source = (rank + size - shift) % size;
      MPI_Irecv(op->out, op->count, MPI_LONG, op->source, op->tag, MPI_COMM_WORLD, request);
      MPI_Isend(op->in, op->count, MPI_LONG, (rank + shift) % size, op->tag, MPI_COMM_WORLD, request + 1);
      op->kind = kReceive;
      break;
  }
}

static void start_persistent(struct op* op, int step, int slot) {
  for (int i = 0; i < op->count; ++i) op->in[i] = value_of(rank, step, slot, i);
  memset(op->out, 0, sizeof(long) * (size_t)(op->count + 1));
  op->done = 0;
}

static void check_op(struct op* op, int step, int slot) {
  if (op->kind == kCollective) {
    check_call(&op->call);
    return;
  }
  for (int i = 0; i < op->count; ++i) {
    long right = 0;
    switch (op->kind) {
      case kReceive:
        right = value_of(op->source, step, slot, i);
        break;
      case kMax:
        right = value_of(size - 1, step, slot, i);
        break;
      default:
        for (int r = 0; r < size; ++r) right += value_of(r, step, slot, i);
        break;
    }
    if (op->out[i] != right) {
      complain("wrong result", step);
      return;
    }
    hash = (hash ^ (uint64_t)op->out[i]) * 1099511628211ull;
  }
  if (op->out[op->count] != 0) complain("written beyond the end", step);
}

static struct op ops[kMost];
static MPI_Request requests[kMost], before[kMost];

/* Checks a completed request; `status` may be null. */
static void completed(int i, const MPI_Status* status, int step) {
  struct op* const op = &ops[i];
  if (op->done++ || before[i] == MPI_REQUEST_NULL) complain("completed twice, or was null", step);
  if (op->kind == kPersistent ? requests[i] != before[i] : requests[i] != MPI_REQUEST_NULL)
    complain("wrong handle after completion", step);
  if (op->kind == kReceive && status) {
    int count = -1;
    MPI_Get_count(status, MPI_LONG, &count);
    if (status->MPI_SOURCE != op->source || status->MPI_TAG != op->tag || count != op->count)
      complain("wrong status of a message", step);
  }
}

/* The number of requests in [first, end) that can be completed. */
static int num_open(int first, int end) {
  int open = 0;
  for (int i = first; i < end; ++i) open += before[i] != MPI_REQUEST_NULL && !ops[i].done;
  return open;
}

/* Completes some of requests [0, num) by a random function of MPI's. */
static void complete_some(int num, uint64_t* own, int step) {
  MPI_Status statuses[kMost];
  int indices[kMost], index = -7, flag = -7, outcount = -7;
  const int first = below(own, num), end = first + 1 + below(own, num - first), n = end - first;
  const int ignore = below(own, 4) == 0, open = num_open(first, end);
  MPI_Status* const all = ignore ? MPI_STATUSES_IGNORE : statuses;
  MPI_Status* const one = ignore ? MPI_STATUS_IGNORE : statuses;
  MPI_Request* const some = requests + first;
  const int function = below(own, 10);
  if (below(own, 8) == 0) requests[first] = MPI_Request_f2c(MPI_Request_c2f(requests[first]));
  switch (function) {
    case 0:
    case 1:
      if (function == 0) {
        MPI_Wait(some, one);
        flag = 1;
      } else {
        MPI_Test(some, &flag, one);
      }
      if (flag && num_open(first, first + 1)) completed(first, ignore ? NULL : statuses, step);
      if (!flag && some[0] != before[first]) complain("a failed test has changed the handle", step);
      break;
    case 2:
    case 3:
      if (function == 2) {
        MPI_Waitall(n, some, all);
        flag = 1;
      } else {
        MPI_Testall(n, some, &flag, all);
      }
      for (int i = first; i < end; ++i) {
        if (flag && num_open(i, i + 1)) completed(i, ignore ? NULL : &statuses[i - first], step);
        if (!flag && !ops[i].done && requests[i] != before[i])
          complain("a failed test has changed a handle", step);
      }
      break;
    case 4:
    case 5:
      if (function == 4) {
        MPI_Waitany(n, some, &index, one);
        flag = 1;
      } else {
        MPI_Testany(n, some, &index, &flag, one);
      }
      if ((index == MPI_UNDEFINED) != (!flag || open == 0)) complain("wrong index", step);
      if (flag && index != MPI_UNDEFINED) completed(first + index, ignore ? NULL : statuses, step);
      break;
    case 6:
    case 7:
      if (function == 6)
        MPI_Waitsome(n, some, &outcount, indices, all);
      else
        MPI_Testsome(n, some, &outcount, indices, all);
      if ((outcount == MPI_UNDEFINED) != (open == 0) || outcount > open || (function == 6 && outcount == 0))
        complain("wrong outcount", step);
      for (int i = 0; outcount != MPI_UNDEFINED && i < outcount; ++i)
        completed(first + indices[i], ignore ? NULL : &statuses[i], step);
      break;
    case 8:
      MPI_Request_get_status(some[0], &flag, one);
      if (flag == 0 && open == 0) complain("a null request is not complete", step);
      break;
    default:
      /* Another call of MPI in between. */
      MPI_Iprobe(MPI_ANY_SOURCE, kMost + 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
      break;
  }
}

static void run_program(int program, uint64_t* shared, uint64_t* own, MPI_Comm* comms) {
  const int num_steps = 1 + below(shared, 3);
  const int num_persistent = below(shared, most_persistent + 1);
  int slots[2];
  for (int i = 0; i < kMost; ++i) {
    requests[i] = before[i] = MPI_REQUEST_NULL;
    ops[i].kind = kNone;
    ops[i].done = 1;
  }
  for (int p = 0; p < num_persistent; ++p) {
    struct op* const op = &ops[p];
    slots[p] = p;
    op->kind = kPersistent;
    op->count = random_count(shared);
    op->in = malloc(sizeof(long) * (size_t)(op->count + 1));
    op->out = malloc(sizeof(long) * (size_t)(op->count + 1));
    MPI_Allreduce_init(op->in, op->out, op->count, MPI_LONG, MPI_SUM, comms[below(shared, 2)], MPI_INFO_NULL,
                       &requests[p]);
    before[p] = requests[p];
  }
  for (int step = program; step < program + num_steps; ++step) {
    int num = num_persistent;
    /* Persistent requests may start in any order. */
    if (num_persistent == 2 && below(own, 2)) {
      const int other = slots[0];
      slots[0] = slots[1];
      slots[1] = other;
    }
    for (int p = 0; p < num_persistent; ++p) start_persistent(&ops[p], step, p);
    if (below(own, 2)) {
      for (int p = 0; p < num_persistent; ++p) MPI_Start(&requests[slots[p]]);
    } else {
      MPI_Startall(num_persistent, requests);
    }
    const int num_ops = 1 + below(shared, 8);
    for (int i = 0; i < num_ops && num + 2 < kMost; ++i) {
      start_op(&ops[num], &requests[num], step, num, shared, comms);
      before[num] = requests[num];
      if (ops[num].kind == kReceive) {
        before[num + 1] = requests[num + 1];
        ops[num + 1].kind = kSend;
        ops[num + 1].done = 0;
        ++num;
      }
      ++num;
      /* Leaves a null request in between. */
      if (num + 2 < kMost && below(shared, 4) == 0) ++num;
    }
    if (below(shared, 4) == 0) MPI_Barrier(comms[1]);
    if (below(shared, 4) == 0) {
      int ones = 1;
      MPI_Allreduce(MPI_IN_PLACE, &ones, 1, MPI_INT, MPI_SUM, comms[below(shared, 2)]);
      if (ones != size) complain("wrong blocking sum", step);
    }
    if (num > 0) {
      while (num_open(0, num) > 0) complete_some(num, own, step);
      /* No request is left. */
      int index = 0;
      MPI_Waitany(num, requests, &index, MPI_STATUS_IGNORE);
      if (index != MPI_UNDEFINED) complain("a request is left", step);
    }
    for (int i = 0; i < num; ++i) {
      if (ops[i].kind != kNone && ops[i].kind != kSend) check_op(&ops[i], step, i);
    }
    for (int i = num_persistent; i < num; ++i) {
      if (ops[i].kind != kNone && ops[i].kind != kSend) {
        free(ops[i].in);
        free(ops[i].out);
      }
      ops[i].kind = kNone;
      ops[i].done = 1;
      before[i] = MPI_REQUEST_NULL;
    }
  }
  for (int p = 0; p < num_persistent; ++p) {
    MPI_Request_free(&requests[p]);
    if (requests[p] != MPI_REQUEST_NULL) complain("a freed request has a handle", program);
    free(ops[p].in);
    free(ops[p].out);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (argc > 3) most_persistent = atoi(argv[3]);
  MPI_Comm comms[3];
  int ones = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  /* The ranks in reverse order, so that rings of the two communicators differ. */
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
  comms[0] = MPI_COMM_WORLD;
  comms[2] = MPI_COMM_SELF;
  calls_rank = rank;
  MPI_Op_create(add_longs, 1, &user_sum);
  MPI_Op_create(user_max, 1, &calls_user_op);
  MPI_Type_contiguous(2, MPI_LONG, &pair_type);
  MPI_Type_commit(&pair_type);
  for (int i = 0; i < 2; ++i) MPI_Allreduce(MPI_IN_PLACE, &ones, 1, MPI_INT, MPI_MAX, comms[i]);
  uint64_t shared = strtoull(argv[1], NULL, 10), own = shared ^ (uint64_t)(rank + 1) << 32;
  for (int program = 0; program < atoi(argv[2]); ++program) run_program(program, &shared, &own, comms);
  wrong += (int)num_wrong;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("hash %llx\nwrong %d\n", (unsigned long long)hash, wrong);
  MPI_Type_free(&pair_type);
  MPI_Op_free(&user_sum);
  MPI_Op_free(&calls_user_op);
  MPI_Comm_free(&comms[1]);
  MPI_Finalize();
  return wrong != 0;
}
