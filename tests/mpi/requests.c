/*
 * Ordinary MPI programs, each of which uses non-blocking collectives and persistent allreduces in a manner
 * that an interposer can break; the arguments select some, which run one after the other. Exit status 0 and
 * "ok" from rank 0 where everything conforms to MPI.
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

static int rank, size;

static int fail(const char* what) {
  fprintf(stderr, "rank %d: %s\n", rank, what);
  return 1;
}

static int class_of(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class;
}

/* A blocking call, after which HiPS executes non-blocking ones of the communicator. */
static void set_up(MPI_Comm comm) {
  int one = 1;
  MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, comm);
}

/* Rank 1 sends only after its allreduce, which needs rank 0 while rank 0 waits in a receive. */
static int receive_meanwhile(void) {
  enum { kCount = 300000 };
  double* values = malloc(kCount * sizeof *values);
  MPI_Request request;
  set_up(MPI_COMM_WORLD);
  for (int round = 0; round < 20; ++round) {
    int token = round;
    for (int i = 0; i < kCount; ++i) values[i] = i % 100 + rank;
    MPI_Iallreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 0) MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    for (int i = 0; i < kCount; ++i)
      if (values[i] != size * (i % 100) + size * (size - 1) / 2) return fail("wrong sum");
    if (token != round) return fail("wrong message");
  }
  free(values);
  return 0;
}

/* A large message whose receiver waits for it and an allreduce together. */
static int large_message(void) {
  enum { kBytes = 8 << 20 };
  char *out = malloc(kBytes), *in = calloc(kBytes, 1);
  int value = rank, statuses_wrong = 0;
  MPI_Request requests[3];
  MPI_Status statuses[3];
  set_up(MPI_COMM_WORLD);
  memset(out, rank + 1, kBytes);
  MPI_Irecv(in, kBytes, MPI_CHAR, (rank + 1) % size, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(out, kBytes, MPI_CHAR, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &requests[2]);
  MPI_Waitall(3, requests, statuses);
  int count = 0;
  MPI_Get_count(&statuses[0], MPI_CHAR, &count);
  statuses_wrong = count != kBytes || statuses[0].MPI_SOURCE != (rank + 1) % size;
  if (statuses_wrong || in[0] != (rank + 1) % size + 1 || in[kBytes - 1] != in[0])
    return fail("wrong message");
  if (value != size * (size - 1) / 2) return fail("wrong sum");
  free(in);
  free(out);
  return 0;
}

/* A non-blocking call waits for nobody, the first on its communicator neither. */
static int first_calls(void) {
  MPI_Comm comms[2];
  MPI_Request requests[2];
  int values[2] = {1, 2}, token = 0;
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < 2; ++i) {
    /* In another order on odd ranks, and on the last rank only after a message of rank 0's. */
    const int which = (i + rank) % 2;
    if (i == 0 && rank == size - 1) MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iallreduce(MPI_IN_PLACE, &values[which], 1, MPI_INT, MPI_SUM, comms[which], &requests[which]);
  }
  if (rank == 0) MPI_Send(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (values[0] != size || values[1] != 2 * size) return fail("wrong sum");
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
  return 0;
}

/* A communicator may be freed while its calls are outstanding, and before its persistent requests start. */
static int communicator_freed(void) {
  MPI_Comm comm;
  MPI_Request requests[2];
  int *values = malloc(100000 * sizeof *values), sum = 0, one = 1;
  for (int round = 0; round < 5; ++round) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    set_up(comm);
    for (int i = 0; i < 100000; ++i) values[i] = i + rank;
    MPI_Iallreduce(MPI_IN_PLACE, values, 100000, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[1]);
    MPI_Comm_free(&comm);
    if (rank == 0) usleep(10000);
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 100000; ++i)
      if (values[i] != size * i + size * (size - 1) / 2) return fail("wrong sum");
    if (sum != size) return fail("wrong persistent sum");
    MPI_Request_free(&requests[1]);
  }
  free(values);
  return 0;
}

enum { kCount = 3000 };

/* One of each other collective, outstanding together with a message. With `frees` the communicator and the
 * types are freed meanwhile. */
static int one_of_each(MPI_Comm comm, int frees) {
  static int cast[2 * kCount], reduced[kCount], block[kCount], gathered[64 * 2 * kCount], in[64 * kCount];
  int counts[64], places[64], got = -1;
  const int own = kCount / size;
  MPI_Request requests[6];
  MPI_Datatype gappy, whole;
  MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &gappy);
  MPI_Type_commit(&gappy);
  MPI_Type_contiguous(own, MPI_INT, &whole);
  MPI_Type_commit(&whole);
  for (int r = 0; r < size; ++r) counts[r] = own, places[r] = r * own;
  for (int i = 0; i < 2 * kCount; ++i) cast[i] = rank == 1 ? i : -1;
  for (int i = 0; i < size * kCount; ++i) in[i] = i + rank;
  memset(gathered, 0, sizeof gathered);
  MPI_Ibcast(cast, kCount, gappy, 1, comm, &requests[0]);
  MPI_Ireduce(in, reduced, kCount, MPI_INT, MPI_SUM, 0, comm, &requests[1]);
  MPI_Iallgatherv(in, 1, whole, gathered, counts, places, gappy, comm, &requests[2]);
  MPI_Ireduce_scatter_block(in, block, kCount, MPI_INT, MPI_SUM, comm, &requests[3]);
  MPI_Ibarrier(comm, &requests[4]);
  MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % size, 4, MPI_COMM_WORLD, &requests[5]);
  if (frees) {
    MPI_Type_free(&gappy);
    MPI_Type_free(&whole);
    MPI_Comm_free(&comm);
    if (rank == 0) usleep(10000);
  }
  MPI_Send(&rank, 1, MPI_INT, (rank + size - 1) % size, 4, MPI_COMM_WORLD);
  MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
  if (!frees) {
    MPI_Type_free(&gappy);
    MPI_Type_free(&whole);
  }
  for (int i = 0; i < kCount; ++i) {
    const int sum = size * i + size * (size - 1) / 2;
    if (cast[2 * i] != 2 * i || cast[2 * i + 1] != (rank == 1 ? 2 * i + 1 : -1)) return fail("wrong bcast");
    if (rank == 0 && reduced[i] != sum) return fail("wrong reduction");
    if (block[i] != sum + size * rank * kCount) return fail("wrong section");
  }
  for (int i = 0; i < own * size; ++i)
    if (gathered[2 * i] != i % own + i / own || gathered[2 * i + 1] != 0) return fail("wrong gather");
  return got == (rank + 1) % size ? 0 : fail("wrong message");
}

static int all_forms(void) {
  set_up(MPI_COMM_WORLD);
  for (int round = 0; round < 5; ++round)
    if (one_of_each(MPI_COMM_WORLD, 0)) return 1;
  return 0;
}

static int all_freed(void) {
  for (int round = 0; round < 5; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    set_up(comm);
    if (one_of_each(comm, 1)) return 1;
  }
  return 0;
}

static void last_of(void* in, void* inout, int* count, MPI_Datatype* type) {
  /* Not commutative: keeps the operand of the higher rank. */
  (void)in, (void)inout, (void)count, (void)type;
}

/* Calls that HiPS delegates to native MPI, and functions of the program, between others. */
static int special_calls(void) {
  MPI_Request requests[6];
  MPI_Op last;
  int self = 5, nothing = 7, value = rank, minimum = 100 - rank, place[2] = {10 - rank, rank}, in_place = 1;
  MPI_Op_create(last_of, 0, &last);
  set_up(MPI_COMM_WORLD);
  MPI_Iallreduce(MPI_IN_PLACE, &self, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &requests[0]);
  MPI_Iallreduce(&value, &nothing, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, last, MPI_COMM_WORLD, &requests[2]);
  MPI_Iallreduce(MPI_IN_PLACE, &minimum, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &requests[3]);
  MPI_Iallreduce(MPI_IN_PLACE, place, 1, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD, &requests[4]);
  MPI_Iallreduce(MPI_IN_PLACE, &in_place, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[5]);
  for (int left = 6, indices[6], num; left > 0; left -= num)
    MPI_Waitsome(6, requests, &num, indices, MPI_STATUSES_IGNORE);
  MPI_Op_free(&last);
  if (self != 5 || nothing != 7) return fail("a call without data changed its output");
  if (value != size - 1 || minimum != 101 - size || place[0] != 11 - size || place[1] != size - 1 ||
      in_place != size)
    return fail("wrong result");
  return 0;
}

/* What MPI forbids for requests of collectives gives an error of the right class, and the request stays
 * valid. */
static int misuse(void) {
  MPI_Request request, persistent;
  int value = 1, in = 1, out = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  set_up(MPI_COMM_WORLD);
  MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
  if (rank == 0) {
    MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (class_of(MPI_Start(&request)) != MPI_ERR_REQUEST) return fail("a non-blocking call was started");
    if (class_of(MPI_Cancel(&request)) != MPI_ERR_REQUEST) return fail("a collective was cancelled");
    if (class_of(MPI_Request_free(&request)) != MPI_ERR_REQUEST) return fail("an outstanding call was freed");
  }
  /* Native MPI's: HiPS would need barriers in the same order on all ranks. */
  PMPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (value != size || request != MPI_REQUEST_NULL) return fail("wrong sum");
  /* An inactive persistent request completes at once, and stays. */
  int flag = 0;
  MPI_Test(&persistent, &flag, MPI_STATUS_IGNORE);
  if (!flag || persistent == MPI_REQUEST_NULL || out != 0) return fail("an inactive request is not complete");
  MPI_Start(&persistent);
  MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  if (out != size) return fail("wrong persistent sum");
  MPI_Request_free(&persistent);
  return persistent == MPI_REQUEST_NULL ? 0 : fail("a freed request has a handle");
}

/* A program may end without freeing its requests. */
static int never_freed(void) {
  static int in = 1, out;
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i)
    MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
  MPI_Start(&requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  return out == size ? 0 : fail("wrong sum");
}

/* More outstanding calls than any table has at first. */
static int many(void) {
  enum { kMany = 500 };
  static MPI_Request requests[kMany];
  static int values[kMany];
  set_up(MPI_COMM_WORLD);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kMany; ++i) {
      values[i] = i;
      MPI_Iallreduce(MPI_IN_PLACE, &values[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(kMany, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kMany; ++i)
      if (values[i] != size * i) return fail("wrong sum");
  }
  return 0;
}

/* The best time per call of `num` outstanding calls, over several rounds. */
static double time_of_each(int num) {
  static MPI_Request requests[1000];
  static int values[1000], indices[1000];
  double best = 1e9;
  for (int round = 0; round < 6; ++round) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const double begin = PMPI_Wtime();
    for (int i = 0; i < num; ++i)
      MPI_Iallreduce(MPI_IN_PLACE, &values[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    if (round % 2) {
      MPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
    } else {
      for (int left = num, some; left > 0; left -= some)
        MPI_Waitsome(num, requests, &some, indices, MPI_STATUSES_IGNORE);
    }
    const double each = (PMPI_Wtime() - begin) / num;
    if (each < best) best = each;
  }
  return best;
}

/* Ten times as many outstanding calls: progressing all of them for each of them takes fifty times as long. */
static int thousand_outstanding(void) {
  set_up(MPI_COMM_WORLD);
  const double few = time_of_each(100), many_more = time_of_each(1000);
  if (rank == 0) fprintf(stderr, "%.1f us each of 100, %.1f us of 1000\n", few * 1e6, many_more * 1e6);
  return many_more < 25 * few ? 0 : fail("outstanding calls slow each other down");
}

struct thread_args {
  MPI_Comm comm;
  MPI_Datatype type; /* every other int */
  int tag, wrong;
};

static void* mixed_waits(void* pointer) {
  struct thread_args* const args = pointer;
  for (int i = 0; i < 200; ++i) {
    int value = i, out = i, in = -1, own = i + rank, all[64] = {0};
    MPI_Request requests[4];
    MPI_Irecv(&in, 1, MPI_INT, (rank + 1) % size, args->tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, args->comm, &requests[1]);
    MPI_Isend(&out, 1, MPI_INT, (rank + size - 1) % size, args->tag, MPI_COMM_WORLD, &requests[2]);
    MPI_Iallgather(&own, 1, MPI_INT, all, 1, args->type, args->comm, &requests[3]);
    if (i % 2) {
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    } else {
      for (int left = 4, index; left > 0; --left) MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE);
    }
    args->wrong += value != size * i || in != i || all[0] != i || all[2 * (size - 1)] != i + size - 1;
  }
  return NULL;
}

/* MPI_THREAD_MULTIPLE: each thread waits for calls of its own communicator and messages. */
static int threads(void) {
  enum { kThreads = 3 };
  pthread_t ids[kThreads];
  struct thread_args args[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &args[i].comm);
    set_up(args[i].comm);
    MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &args[i].type);
    MPI_Type_commit(&args[i].type);
    args[i].tag = i;
    args[i].wrong = 0;
  }
  for (int i = 0; i < kThreads; ++i) pthread_create(&ids[i], NULL, mixed_waits, &args[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(ids[i], NULL);
  for (int i = 0; i < kThreads; ++i) {
    MPI_Type_free(&args[i].type);
    MPI_Comm_free(&args[i].comm);
    if (args[i].wrong) return fail("wrong result in a thread");
  }
  return 0;
}

/* Ranks that disagree: each completion function returns the error where MPI requires it. `completion` is the
 * function; with "gather-" before it the call is a gather instead of a sum. */
static int mismatch(const char* completion) {
  const int gathers = strncmp(completion, "gather-", 7) == 0, count = rank == size - 1 ? 3 : 2;
  const char* const function = gathers ? "hips: MPI_Iallgather" : "hips: MPI_Iallreduce";
  char text[MPI_MAX_ERROR_STRING] = "";
  int values[3 * 64], others[3] = {1, 1, 1}, message = rank, got = -1, length = 0, index, code, class;
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3];
  if (gathers) completion += 7;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  set_up(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  memset(values, 0, sizeof values);
  memset(statuses, 0x77, sizeof statuses);
  MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&message, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[2]);
  /* A late rank gets the error from the call itself. */
  code = gathers
             ? MPI_Iallgather(others, count, MPI_INT, values, count, MPI_INT, MPI_COMM_WORLD, &requests[1])
             : MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  if (code != MPI_SUCCESS) {
    if (requests[1] != MPI_REQUEST_NULL) return fail("a call that was not started has a handle");
    completion = "at once";
  }
  if (strcmp(completion, "wait") == 0) {
    code = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  } else if (strcmp(completion, "waitany") == 0) {
    do code = MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
    while (code == MPI_SUCCESS && index != MPI_UNDEFINED);
    if (index != 1) return fail("wrong index");
  } else if (strcmp(completion, "waitall") == 0) {
    code = MPI_Waitall(3, requests, statuses);
    MPI_Error_class(code, &class);
    if (class != MPI_ERR_IN_STATUS) return fail("not MPI_ERR_IN_STATUS");
    if (statuses[0].MPI_ERROR != MPI_SUCCESS || statuses[2].MPI_ERROR != MPI_SUCCESS)
      return fail("wrong message");
    if (got != (rank + 1) % size) return fail("a message is lost");
    code = statuses[1].MPI_ERROR;
  }
  if (code == MPI_SUCCESS) return fail("ranks with different counts got MPI_SUCCESS");
  MPI_Error_string(code, text, &length);
  if (!strstr(text, function) || !strstr(text, "all ranks must pass the same")) return fail(text);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  return requests[1] == MPI_REQUEST_NULL ? 0 : fail("a failed call still has a handle");
}

/* A rank dies while the others wait for its contribution. */
static int killed(void) {
  int value = 1;
  MPI_Request request;
  set_up(MPI_COMM_WORLD);
  /* No rank is still in a call of HiPS. */
  if (rank != 1) MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  for (int other = 0; rank == 1 && other < size; ++other)
    if (other != 1) MPI_Recv(&value, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) raise(SIGKILL);
  MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return fail("nobody died");
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int (*run)(void);
  } kCases[] = {{"receive-meanwhile", receive_meanwhile},
                {"large-message", large_message},
                {"first-calls", first_calls},
                {"communicator-freed", communicator_freed},
                {"all-forms", all_forms},
                {"all-freed", all_freed},
                {"special-calls", special_calls},
                {"misuse", misuse},
                {"never-freed", never_freed},
                {"many", many},
                {"thousand-outstanding", thousand_outstanding},
                {"threads", threads},
                {"killed", killed}};
  int provided, result = 0;
  const int multiple = argc > 1 && strcmp(argv[1], "threads") == 0;
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int arg = 1; arg < argc && result == 0; ++arg) {
    result = 2;
    for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i)
      if (strcmp(argv[arg], kCases[i].name) == 0) result = kCases[i].run();
    if (strcmp(argv[arg], "mismatch") == 0 && arg + 1 < argc) result = mismatch(argv[++arg]);
    if (result != 0) fprintf(stderr, "rank %d: failed in \"%s\"\n", rank, argv[arg]);
  }
  if (rank == 0 && result == 0) printf("ok\n");
  fflush(stdout);
  MPI_Finalize();
  return result;
}
