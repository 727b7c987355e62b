/*
 * An ordinary MPI program that knows nothing of HiPS: seeded random programs of all blocking collectives that
 * HiPS takes, on several communicators, with types that have gaps, types that differ and match, operations of
 * the user's and of two values, in place and not, counts of zero. Every element is compared with what it has
 * to be.
 *
 * collectives SEED PROGRAMS differ|alike
 *
 * "differ": the types of ranks do. Open MPI 4.1 cuts vectors by the count that each rank passed, and hangs
 * then.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 64
#define GUARD 0x5a5a5a5a

static int world_rank;
static int types_differ;
static long num_wrong, num_calls;

/* The same numbers on all ranks of the world. */
static unsigned long long state;
static unsigned draw(unsigned below) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(state >> 33) % below;
}

static int value(int rank, int i, int salt) {
  return (rank * 31 + i * 17 + salt) % 101 - 50;
}

static void expect(const char* what, int i, int is, int right) {
  if (is == right) return;
  if (++num_wrong <= 5)
    fprintf(stderr, "rank %d, call %ld: %s: element %d is %d instead of %d\n", world_rank, num_calls, what, i,
            is, right);
}

/* How elements lie in memory: one behind the other, with gaps, or the other way round. */
enum Shape { kPlain, kStrided, kReversed, kNumShapes };
struct Memory {
  MPI_Datatype type; /* `each` ints a piece */
  int each, stride;
  enum Shape shape;
};

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
    /* No gaps, but another order. */
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
/* Where the i-th element lies, in ints. */
static int place(const struct Memory* memory, int i) {
  const int piece = i / memory->each, within = i % memory->each;
  if (memory->shape == kPlain) return i;
  return piece * memory->stride + (memory->shape == kStrided ? 2 * within : memory->each - 1 - within);
}
static int* make_buffer(int ints) {
  int* buffer = malloc((size_t)(ints + 1) * sizeof(int));
  int i;
  for (i = 0; i <= ints; ++i) buffer[i] = GUARD;
  return buffer;
}

static int user_calls;
static void user_max(void* in, void* inout, int* count, MPI_Datatype* type) {
  int i;
  (void)type;
  ++user_calls;
  for (i = 0; i < *count; ++i)
    if (((int*)in)[i] > ((int*)inout)[i]) ((int*)inout)[i] = ((int*)in)[i];
}

static int folded(int which, int size, int i, int salt) {
  int r, result = value(0, i, salt);
  for (r = 1; r < size; ++r) {
    const int v = value(r, i, salt);
    if (which == 0) result += v;
    if (which == 1 || which == 3) result = v > result ? v : result;
    if (which == 2) result &= v;
  }
  return result;
}

static void one_call(MPI_Comm comm, MPI_Op user_op) {
  static const int kCounts[] = {0, 1, 3, 8, 100, 1009, 20000};
  const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_BAND, user_op};
  const int kind = (int)draw(8), which = (int)draw(4), salt = (int)draw(1000);
  const int in_place = (int)draw(3) == 0;
  const unsigned root_draw = draw(1000), shapes = draw(1000), count_draw = draw(7), cut = draw(1000);
  int rank, size, i, r, root;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  root = (int)(root_draw % (unsigned)size);
  int count = kCounts[count_draw];
  ++num_calls;

  if (kind == 0) {
    MPI_Barrier(comm);
  } else if (kind == 1) {
    /* Types that differ from rank to rank, of one signature: pieces of 4. */
    const unsigned own = types_differ ? (unsigned)rank : 0;
    struct Memory memory = make_memory((enum Shape)((shapes + own) % kNumShapes), 4);
    int* buffer;
    count = count / 4 * 4;
    buffer = make_buffer(2 * count);
    for (i = 0; i < count && rank == root; ++i) buffer[place(&memory, i)] = value(root, i, salt);
    MPI_Bcast(buffer, count / memory.each, memory.type, root, comm);
    for (i = 0; i < count; ++i) expect("bcast", i, buffer[place(&memory, i)], value(root, i, salt));
    if (memory.shape == kStrided)
      for (i = 0; i < count; ++i) expect("bcast, gap", i, buffer[place(&memory, i) + 1], GUARD);
    free(buffer);
    free_memory(&memory);
  } else if (kind == 2 || kind == 3) {
    const int all = kind == 3, gets = all || rank == root;
    int* in = make_buffer(count);
    /* Elsewhere the output means nothing, and may be null. */
    int* out = gets ? make_buffer(count) : NULL;
    const void* from = in;
    for (i = 0; i < count; ++i) in[i] = value(rank, i, salt);
    if (in_place && gets) {
      memcpy(out, in, (size_t)count * sizeof(int));
      from = MPI_IN_PLACE;
    }
    if (all)
      MPI_Allreduce(from, out, count, MPI_INT, ops[which], comm);
    else
      MPI_Reduce(from, out, count, MPI_INT, ops[which], root, comm);
    for (i = 0; i < count && gets; ++i)
      expect(all ? "allreduce" : "reduce", i, out[i], folded(which, size, i, salt));
    if (gets) expect("reduce, end", count, out[count], GUARD);
    for (i = 0; i < count; ++i) expect("reduce, input", i, in[i], value(rank, i, salt));
    free(in);
    free(out);
  } else if (kind == 4 || kind == 5) {
    int counts[MAX_RANKS], first = 0, total = 0;
    count /= size;
    for (r = 0; r < size; ++r) {
      counts[r] = kind == 4 ? count : count / 2 + (int)((cut + (unsigned)r * 7) % (unsigned)(count / 2 + 1));
      if (r == rank) first = total;
      total += counts[r];
    }
    {
      int* in = make_buffer(total);
      int* out = make_buffer(in_place ? total : counts[rank]);
      for (i = 0; i < total; ++i) in[i] = value(rank, i, salt);
      if (in_place) memcpy(out, in, (size_t)total * sizeof(int));
      if (kind == 4)
        MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : (void*)in, out, count, MPI_INT, ops[which], comm);
      else
        MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : (void*)in, out, counts, MPI_INT, ops[which], comm);
      for (i = 0; i < counts[rank]; ++i)
        expect("reduce_scatter", i, out[i], folded(which, size, first + i, salt));
      free(in);
      free(out);
    }
  } else {
    /* Both sides of a gather have types of their own; displacements leave gaps. */
    const unsigned odd = types_differ ? (unsigned)rank : 0;
    struct Memory sends = make_memory((enum Shape)((shapes + odd) % kNumShapes), 4);
    struct Memory takes = make_memory((enum Shape)((shapes / 7 + 2 * odd) % kNumShapes), 4);
    int counts[MAX_RANKS], places[MAX_RANKS], end = 0;
    count = count / size / 4 * 4;
    for (r = 0; r < size; ++r) {
      const int own = kind == 6 ? count : 4 * (int)((cut + (unsigned)r * 5) % (unsigned)(count / 4 + 1));
      counts[r] = own / takes.each;
      places[r] = end;
      end += counts[r] + (kind == 6 ? 0 : (int)(cut % 3));
    }
    {
      const int own = counts[rank] * takes.each;
      int* in = make_buffer(2 * own);
      int* out = make_buffer(end * takes.stride);
      const void* from = in;
      for (i = 0; i < own; ++i) in[place(&sends, i)] = value(rank, i, salt);
      if (in_place) {
        for (i = 0; i < own; ++i) out[places[rank] * takes.stride + place(&takes, i)] = value(rank, i, salt);
        from = MPI_IN_PLACE;
      }
      if (kind == 6)
        MPI_Allgather(from, own / sends.each, sends.type, out, counts[0], takes.type, comm);
      else
        MPI_Allgatherv(from, own / sends.each, sends.type, out, counts, places, takes.type, comm);
      for (r = 0; r < size; ++r)
        for (i = 0; i < counts[r] * takes.each; ++i)
          expect("allgather", i, out[places[r] * takes.stride + place(&takes, i)], value(r, i, salt));
      expect("allgather, end", end, out[end * takes.stride], GUARD);
      free(in);
      free(out);
    }
    free_memory(&sends);
    free_memory(&takes);
  }
}

int main(int argc, char** argv) {
  const unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  const int programs = argc > 2 ? atoi(argv[2]) : 10;
  int program, step, world_size;
  long all_wrong = 0;
  MPI_Op user_op;
  types_differ = argc > 3 && strcmp(argv[3], "differ") == 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Op_create(user_max, 1, &user_op);
  for (program = 0; program < programs; ++program) {
    MPI_Comm comms[4];
    state = seed + (unsigned)program * 977;
    comms[0] = MPI_COMM_WORLD;
    comms[1] = MPI_COMM_SELF;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &comms[3]);
    for (step = 0; step < 40; ++step) one_call(comms[draw(4)], user_op);
    MPI_Comm_free(&comms[2]);
    MPI_Comm_free(&comms[3]);
  }
  /* The profiling name means the host's function: nobody intercepts it. */
  PMPI_Allreduce(&num_wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0) printf("programs %d calls %ld wrong %ld\n", programs, num_calls, all_wrong);
  MPI_Op_free(&user_op);
  MPI_Finalize();
  return all_wrong != 0;
}
