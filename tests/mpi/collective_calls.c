#include "tests/mpi/collective_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls with some salts use the functions of MPI 4 for large counts. */
static int is_large(const struct Call* call) {
  return MPI_VERSION >= 4 && call->salt % 3 == 0;
}
#if MPI_VERSION >= 4
#define EITHER(call, function, ...) (is_large(call) ? function##_c(__VA_ARGS__) : function(__VA_ARGS__))
#else
#define EITHER(call, function, ...) (is_large(call), function(__VA_ARGS__))
#endif

int calls_rank;
long num_wrong, num_calls;
MPI_Op calls_user_op;

void user_max(void* in, void* inout, int* count, MPI_Datatype* type) {
  int i;
  (void)type;
  for (i = 0; i < *count; ++i)
    if (((int*)in)[i] > ((int*)inout)[i]) ((int*)inout)[i] = ((int*)in)[i];
}

static int call_value(int rank, int i, int salt) {
  return (rank * 31 + i * 17 + salt) % 101 - 50;
}

void expect(const struct Call* call, const char* what, int i, int is, int right) {
  if (is == right) return;
  if (++num_wrong <= 5)
    fprintf(stderr, "rank %d, call of kind %d, salt %d: %s: element %d is %d instead of %d\n", calls_rank,
            (int)call->kind, call->salt, what, i, is, right);
}

static struct Memory make_memory(enum Shape shape, int each) {
  struct Memory memory = {MPI_INT, 1, 1, shape};
  if (shape == kStrided) {
    MPI_Datatype vector;
    MPI_Type_vector(each, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, (MPI_Aint)(2 * each * (int)sizeof(int)), &memory.type);
    MPI_Type_free(&vector);
    MPI_Type_commit(&memory.type);
    memory.each = each;
    memory.stride = 2 * each;
  } else if (shape == kReversed) {
    /* Without gaps, but in another order. */
    int at[8], ones[8], i;
    for (i = 0; i < each; ++i) at[i] = each - 1 - i, ones[i] = 1;
    MPI_Type_indexed(each, ones, at, MPI_INT, &memory.type);
    MPI_Type_commit(&memory.type);
    memory.each = each;
    memory.stride = each;
  }
  return memory;
}
static void free_memory(struct Memory* memory) {
  if (memory->type != MPI_INT) MPI_Type_free(&memory->type);
}
/* The place of the i-th element, in ints. */
static int place(const struct Memory* memory, int i) {
  const int piece = i / memory->each, within = i % memory->each;
  if (memory->shape == kPlain) return i;
  return piece * memory->stride + (memory->shape == kStrided ? 2 * within : memory->each - 1 - within);
}
static int* make_buffer(int ints) {
  int* buffer = malloc((size_t)(ints + 1) * sizeof(int));
  int i;
  for (i = 0; i <= ints; ++i) buffer[i] = kGuard;
  return buffer;
}

static int reduced(const struct Call* call, int i) {
  int r, result = call_value(0, i, call->salt);
  for (r = 1; r < call->size; ++r) {
    const int v = call_value(r, i, call->salt);
    if (call->which == 0) result += v;
    if (call->which == 1 || call->which == 3) result = v > result ? v : result;
    if (call->which == 2) result &= v;
  }
  return result;
}

static void make_bcast(struct Call* call, MPI_Request* request) {
  /* Types that differ between ranks but have the same signature: pieces of 4. */
  const unsigned own = call->types_differ ? (unsigned)call->rank : 0;
  int i, count;
  call->takes = make_memory((enum Shape)((call->shapes + own) % kNumShapes), 4);
  call->count = call->count / 4 * 4;
  count = call->count / call->takes.each;
  call->out = make_buffer(2 * call->count);
  for (i = 0; i < call->count && call->rank == call->root; ++i)
    call->out[place(&call->takes, i)] = call_value(call->root, i, call->salt);
  if (call->absolute && call->count > 0) {
    /* The same elements, by absolute addresses. */
    MPI_Datatype there;
    MPI_Aint at;
    int one = 1;
    MPI_Get_address(call->out, &at);
    MPI_Type_create_hindexed(1, &count, &at, call->takes.type, &there);
    MPI_Type_commit(&there);
    if (request)
      EITHER(call, MPI_Ibcast, MPI_BOTTOM, one, there, call->root, call->comm, request);
    else
      EITHER(call, MPI_Bcast, MPI_BOTTOM, one, there, call->root, call->comm);
    MPI_Type_free(&there);
  } else if (request) {
    EITHER(call, MPI_Ibcast, call->out, count, call->takes.type, call->root, call->comm, request);
  } else {
    EITHER(call, MPI_Bcast, call->out, count, call->takes.type, call->root, call->comm);
  }
  /* MPI lets the program free the type now. */
  free_memory(&call->takes);
}

static void make_reduction(struct Call* call, MPI_Op op, MPI_Request* request) {
  const int gets = call->kind == kAllreduce || call->rank == call->root;
  const void* from;
  int i;
#ifdef MPICH_VERSION
  /* MPICH 4.0 dereferences MPI_IN_PLACE where the root is not rank 0. */
  if (call->kind == kReduce && call->root != 0 && (call->which == 3 || !call->types_differ))
    call->in_place = 0;
#endif
  call->in = make_buffer(call->count);
  /* On other ranks the output has no meaning and may be null. */
  call->out = gets ? make_buffer(call->count) : NULL;
  from = call->in;
  for (i = 0; i < call->count; ++i) call->in[i] = call_value(call->rank, i, call->salt);
  if (call->in_place && gets) {
    memcpy(call->out, call->in, (size_t)call->count * sizeof(int));
    from = MPI_IN_PLACE;
  }
  if (call->kind == kAllreduce) {
    if (request)
      EITHER(call, MPI_Iallreduce, from, call->out, call->count, MPI_INT, op, call->comm, request);
    else
      EITHER(call, MPI_Allreduce, from, call->out, call->count, MPI_INT, op, call->comm);
  } else {
    if (request)
      EITHER(call, MPI_Ireduce, from, call->out, call->count, MPI_INT, op, call->root, call->comm, request);
    else
      EITHER(call, MPI_Reduce, from, call->out, call->count, MPI_INT, op, call->root, call->comm);
  }
}

static void make_scatter(struct Call* call, MPI_Op op, MPI_Request* request) {
  const void* from;
  int i, r;
  call->count /= call->size;
  for (r = 0; r < call->size; ++r) {
    call->counts[r] =
        call->kind == kReduceScatterBlock
            ? call->count
            : call->count / 2 + (int)((call->cut + (unsigned)r * 7) % (unsigned)(call->count / 2 + 1));
    call->places[r] = call->end;
    call->large_counts[r] = call->counts[r];
    call->large_places[r] = call->places[r];
    call->end += call->counts[r];
  }
  call->in = make_buffer(call->end);
  call->out = make_buffer(call->in_place ? call->end : call->counts[call->rank]);
  for (i = 0; i < call->end; ++i) call->in[i] = call_value(call->rank, i, call->salt);
  if (call->in_place) memcpy(call->out, call->in, (size_t)call->end * sizeof(int));
  from = call->in_place ? MPI_IN_PLACE : (void*)call->in;
  if (call->kind == kReduceScatterBlock) {
    if (request)
      EITHER(call, MPI_Ireduce_scatter_block, from, call->out, call->count, MPI_INT, op, call->comm, request);
    else
      EITHER(call, MPI_Reduce_scatter_block, from, call->out, call->count, MPI_INT, op, call->comm);
#if MPI_VERSION >= 4
  } else if (is_large(call)) {
    if (request)
      MPI_Ireduce_scatter_c(from, call->out, call->large_counts, MPI_INT, op, call->comm, request);
    else
      MPI_Reduce_scatter_c(from, call->out, call->large_counts, MPI_INT, op, call->comm);
#endif
  } else {
    if (request)
      MPI_Ireduce_scatter(from, call->out, call->counts, MPI_INT, op, call->comm, request);
    else
      MPI_Reduce_scatter(from, call->out, call->counts, MPI_INT, op, call->comm);
  }
}

static void make_gather(struct Call* call, MPI_Request* request) {
  /* Input and output of a gather have different types; displacements leave gaps. */
  const unsigned shift = call->types_differ ? (unsigned)call->rank : 0;
  const void* from;
  int i, r, own;
  call->sends = make_memory((enum Shape)((call->shapes + shift) % kNumShapes), 4);
  call->takes = make_memory((enum Shape)((call->shapes / 7 + 2 * shift) % kNumShapes), 4);
  call->count = call->count / call->size / 4 * 4;
  for (r = 0; r < call->size; ++r) {
    own = call->kind == kAllgather
              ? call->count
              : 4 * (int)((call->cut + (unsigned)r * 5) % (unsigned)(call->count / 4 + 1));
    call->counts[r] = own / call->takes.each;
    call->places[r] = call->end;
    call->large_counts[r] = call->counts[r];
    call->large_places[r] = call->places[r];
    call->end += call->counts[r] + (call->kind == kAllgather ? 0 : (int)(call->cut % 3));
  }
  own = call->counts[call->rank] * call->takes.each;
  call->in = make_buffer(2 * own);
  call->out = make_buffer(call->end * call->takes.stride);
  from = call->in;
  for (i = 0; i < own; ++i) call->in[place(&call->sends, i)] = call_value(call->rank, i, call->salt);
  if (call->in_place) {
    for (i = 0; i < own; ++i)
      call->out[call->places[call->rank] * call->takes.stride + place(&call->takes, i)] =
          call_value(call->rank, i, call->salt);
    from = MPI_IN_PLACE;
  }
  own /= call->sends.each;
  if (call->kind == kAllgather) {
    if (request)
      EITHER(call, MPI_Iallgather, from, own, call->sends.type, call->out, call->counts[0], call->takes.type,
             call->comm, request);
    else
      EITHER(call, MPI_Allgather, from, own, call->sends.type, call->out, call->counts[0], call->takes.type,
             call->comm);
#if MPI_VERSION >= 4
  } else if (is_large(call)) {
    if (request)
      MPI_Iallgatherv_c(from, own, call->sends.type, call->out, call->large_counts, call->large_places,
                        call->takes.type, call->comm, request);
    else
      MPI_Allgatherv_c(from, own, call->sends.type, call->out, call->large_counts, call->large_places,
                       call->takes.type, call->comm);
#endif
  } else {
    if (request)
      MPI_Iallgatherv(from, own, call->sends.type, call->out, call->counts, call->places, call->takes.type,
                      call->comm, request);
    else
      MPI_Allgatherv(from, own, call->sends.type, call->out, call->counts, call->places, call->takes.type,
                     call->comm);
  }
  free_memory(&call->sends);
  free_memory(&call->takes);
}

void make_call(struct Call* call, MPI_Request* request) {
  const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_BAND, calls_user_op};
  MPI_Comm_rank(call->comm, &call->rank);
  MPI_Comm_size(call->comm, &call->size);
  call->root = (int)(call->root_draw % (unsigned)call->size);
  call->in = call->out = NULL;
  call->end = 0;
  ++num_calls;
  switch (call->kind) {
    case kBarrier:
      if (request)
        MPI_Ibarrier(call->comm, request);
      else
        MPI_Barrier(call->comm);
      break;
    case kBcast:
      make_bcast(call, request);
      break;
    case kReduce:
    case kAllreduce:
      make_reduction(call, ops[call->which], request);
      break;
    case kReduceScatterBlock:
    case kReduceScatter:
      make_scatter(call, ops[call->which], request);
      break;
    default:
      make_gather(call, request);
      break;
  }
}

void check_call(struct Call* call) {
  const struct Memory* const takes = &call->takes;
  int i, r;
  switch (call->kind) {
    case kBcast:
      for (i = 0; i < call->count; ++i)
        expect(call, "bcast", i, call->out[place(takes, i)], call_value(call->root, i, call->salt));
      if (takes->shape == kStrided)
        for (i = 0; i < call->count; ++i) expect(call, "gap", i, call->out[place(takes, i) + 1], kGuard);
      break;
    case kReduce:
    case kAllreduce:
      for (i = 0; i < call->count && call->out; ++i)
        expect(call, "reduction", i, call->out[i], reduced(call, i));
      if (call->out) expect(call, "end", call->count, call->out[call->count], kGuard);
      for (i = 0; i < call->count; ++i)
        expect(call, "input", i, call->in[i], call_value(call->rank, i, call->salt));
      break;
    case kReduceScatterBlock:
    case kReduceScatter:
      for (i = 0; i < call->counts[call->rank]; ++i)
        expect(call, "section", i, call->out[i], reduced(call, call->places[call->rank] + i));
      break;
    case kAllgather:
    case kAllgatherv:
      for (r = 0; r < call->size; ++r)
        for (i = 0; i < call->counts[r] * takes->each; ++i)
          expect(call, "gather", i, call->out[call->places[r] * takes->stride + place(takes, i)],
                 call_value(r, i, call->salt));
      expect(call, "end", call->end, call->out[call->end * takes->stride], kGuard);
      break;
    default:
      break;
  }
  free(call->in);
  free(call->out);
  call->in = call->out = NULL;
}
