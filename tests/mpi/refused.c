/*
 * A program in which one rank now and then makes a wrong call, which MPI refuses by the arguments of that rank alone, and
 * then the right one, which all ranks make. Every result of the right calls is compared.
 *
 *   refused SEED STEPS   many collectives in blocking and non-blocking form, sizes that repeat
 *   refused first        the first collective of all is wrong on rank 0
 *   refused nothing      the first collectives reduce nothing; rank 0 waits for the others after each
 *   refused apart        ranks pass different lengths, get an error, and go on
 */
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kAllreduce,
  kReduce,
  kBcast,
  kAllgather,
  kAllgatherv,
  kReduceScatter,
  kReduceScatterBlock,
  kNumCollectives
};
enum { kRight, kNegativeCount, kNoType, kNoOp, kBadRoot, kUncommitted, kAlias, kNoOutput, kNumKinds };

static int rank, size, wrong, refused;
static MPI_Datatype uncommitted;

static unsigned next(unsigned* state) {
  return *state = *state * 1664525u + 1013904223u, *state >> 8;
}

static int reduces(int what) {
  return what == kAllreduce || what == kReduce || what == kReduceScatter || what == kReduceScatterBlock;
}

/* Whether a wrong call of this kind exists, and every MPI of this ABI refuses it on the rank that makes it. */
static int exists(int kind, int what, int who, int root) {
  switch (kind) {
    case kNegativeCount:
#if !defined(OPEN_MPI)
      if (reduces(what)) return 0; /* MPICH 4.0 crashes */
#endif
      return what != kReduceScatter && what != kAllgatherv;
    case kNoOp:
      return reduces(what);
    case kBadRoot:
      return what == kReduce || what == kBcast;
    case kUncommitted:
      return what == kBcast || what == kAllgather;
    case kAlias:
#if defined(OPEN_MPI)
      return 0 * (who + root); /* accepts aliases */
#else
      return what != kBcast && (what != kReduce || who == root);
#endif
    case kNoOutput: /* MPI_IN_PLACE where the output goes */
#if !defined(OPEN_MPI)
      if (what == kBcast) return 0; /* MPICH 4.0 crashes */
#endif
      return what != kReduce || who == root;
    default:
      return 1;
  }
}

/* Makes the call, wrong in the way of `kind`. Element i of rank r is r + i. */
static int call(int what, int count, int root, int kind, int is_blocking, long* in, long* output,
                MPI_Comm comm) {
  void* const out = kind == kNoOutput ? MPI_IN_PLACE : output;
  const int n = kind == kNegativeCount ? -1 : count;
  const MPI_Datatype type = kind == kNoType        ? MPI_DATATYPE_NULL
                            : kind == kUncommitted ? uncommitted
                                                   : MPI_LONG;
  const MPI_Op op = kind == kNoOp ? MPI_OP_NULL : MPI_SUM;
  const int to = kind == kBadRoot ? size + 3 : root;
  int* const counts = malloc(2 * (size_t)size * sizeof(int));
  int* const places = counts + size;
  for (int r = 0; r < size; ++r) counts[r] = count, places[r] = r * count;
  const void* from = in;
  if (kind == kAlias)
    from = what == kAllgather || what == kAllgatherv ? output + (size_t)rank * (size_t)count : output;
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  switch (what) {
    case kAllreduce:
      code = is_blocking ? MPI_Allreduce(from, out, n, type, op, comm)
                         : MPI_Iallreduce(from, out, n, type, op, comm, &request);
      break;
    case kReduce:
      code = is_blocking ? MPI_Reduce(from, out, n, type, op, to, comm)
                         : MPI_Ireduce(from, out, n, type, op, to, comm, &request);
      break;
    case kBcast:
      if (rank == root && kind == kRight) memcpy(output, in, (size_t)count * sizeof *in);
      code = is_blocking ? MPI_Bcast(out, n, type, to, comm) : MPI_Ibcast(out, n, type, to, comm, &request);
      break;
    case kAllgather:
      code = is_blocking ? MPI_Allgather(from, n, type, out, n, type, comm)
                         : MPI_Iallgather(from, n, type, out, n, type, comm, &request);
      break;
    case kAllgatherv:
      code = is_blocking ? MPI_Allgatherv(from, n, type, out, counts, places, type, comm)
                         : MPI_Iallgatherv(from, n, type, out, counts, places, type, comm, &request);
      break;
    case kReduceScatter:
      code = is_blocking ? MPI_Reduce_scatter(from, out, counts, type, op, comm)
                         : MPI_Ireduce_scatter(from, out, counts, type, op, comm, &request);
      break;
    case kReduceScatterBlock:
      code = is_blocking ? MPI_Reduce_scatter_block(from, out, n, type, op, comm)
                         : MPI_Ireduce_scatter_block(from, out, n, type, op, comm, &request);
      break;
  }
  if (code == MPI_SUCCESS && !is_blocking) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  free(counts);
  return code;
}

static void check(int what, int count, int root, const long* out) {
  const long of_ranks = (long)size * (size - 1) / 2;
  const int num = what == kAllgather || what == kAllgatherv ? size * count : count;
  if (what == kReduce && rank != root) return;
  for (int i = 0; i < num; ++i) {
    long expected = of_ranks + (long)size * i;
    if (what == kBcast) expected = root + i;
    if (what == kAllgather || what == kAllgatherv) expected = i / count + i % count;
    if (what == kReduceScatter || what == kReduceScatterBlock) expected += (long)size * rank * count;
    if (out[i] != expected && ++wrong <= 3)
      fprintf(stderr, "rank %d: collective %d, %d elements: element %d is %ld instead of %ld\n", rank, what,
              count, i, out[i], expected);
  }
}

static void step(int what, int count, int root, int kind, int who, int times, int is_blocking,
                 MPI_Comm comm) {
  const size_t room = (size_t)size * (size_t)count;
  long* const in = malloc(room * sizeof(long));
  long* const out = malloc(room * sizeof(long));
  for (size_t i = 0; i < room; ++i) in[i] = rank + (long)i, out[i] = -1;
  for (int i = 0; kind != kRight && who == rank && i < times; ++i) {
    ++refused;
    if (call(what, count, root, kind, is_blocking, in, out, comm) == MPI_SUCCESS) {
      fprintf(stderr, "rank %d: collective %d with mistake %d is accepted\n", rank, what, kind);
      ++wrong;
    }
  }
  const int code = call(what, count, root, kRight, is_blocking, in, out, comm);
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d: collective %d after mistake %d of rank %d: %s\n", rank, what, kind, who, text);
    ++wrong;
  } else {
    check(what, count, root, out);
  }
  free(in);
  free(out);
}

static void random_steps(unsigned seed, int num_steps, MPI_Comm comm) {
  static const int counts[] = {1, 5, 700, 9000};
  for (int i = 0; i < num_steps && wrong == 0; ++i) {
    const int what = (int)(next(&seed) % kNumCollectives), count = counts[next(&seed) % 4];
    const int root = (int)(next(&seed) % (unsigned)size), who = (int)(next(&seed) % (unsigned)size);
    int kind = (int)(next(&seed) % kNumKinds);
    const int times = 1 + (int)(next(&seed) % 2), is_blocking = next(&seed) % 5 != 0;
    if (next(&seed) % 2 == 0 || !exists(kind, what, who, root)) kind = kRight;
    step(what, count, root, kind, who, times, is_blocking, comm);
  }
}

/* Reductions of nothing, whose buffers are both null, do not make communicators of HiPS on some ranks only. */
static void nothing(MPI_Comm comm) {
  for (int i = 0; i < 20; ++i) {
    MPI_Reduce(NULL, NULL, 0, MPI_LONG, MPI_SUM, 0, comm);
    long token = 1;
    if (rank == 0)
      for (int other = 1; other < size; ++other)
        MPI_Recv(&token, 1, MPI_LONG, other, 5, comm, MPI_STATUS_IGNORE);
    else
      MPI_Send(&token, 1, MPI_LONG, 0, 5, comm);
  }
  random_steps(1, 30, comm);
}

/* The lengths of one broadcast differ; each rank may get an error or not. Then all go on. */
static void apart(MPI_Comm comm) {
  long data[64] = {0};
  for (int round = 0; round < 3; ++round) {
    MPI_Bcast(data, rank == 0 ? 32 : 33 + rank, MPI_LONG, 0, comm);
    for (int i = 0; i < 40 && wrong == 0; ++i) {
      step(kAllreduce, 5, 0, kRight, 0, 0, 1, comm);
      step(kReduce, 700, 1, kRight, 0, 0, 1, comm);
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Type_vector(1, 1, 3, MPI_LONG, &uncommitted);
  if (argc == 3) {
    random_steps((unsigned)atoi(argv[1]), atoi(argv[2]), MPI_COMM_WORLD);
  } else if (argc == 2 && strcmp(argv[1], "first") == 0) {
    step(kReduce, 5, 0, kBadRoot, 0, 2, 1, MPI_COMM_WORLD);
    random_steps(1, 30, MPI_COMM_WORLD);
  } else if (argc == 2 && strcmp(argv[1], "nothing") == 0) {
    nothing(MPI_COMM_WORLD);
  } else if (argc == 2 && strcmp(argv[1], "apart") == 0) {
    apart(MPI_COMM_WORLD);
  }
  int all[2], mine[2] = {wrong, refused};
  MPI_Reduce(mine, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d\nrefused %d\n", all[0], all[1]);
  MPI_Type_free(&uncommitted);
  MPI_Finalize();
  return wrong > 0;
}
