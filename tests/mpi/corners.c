/*
 * Ordinary MPI programs at rare limits: the end of MPI_Finalize, no memory, no descriptors. The first
 * argument selects one. Exit status 0 and "ok" from rank 0 where everything conforms to MPI.
 */
#include <dirent.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hips/mpi.h>

#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

static int rank, size;

static int fail(const char* what) {
  fprintf(stderr, "rank %d: %s\n", rank, what);
  return 1;
}

static int sum_is_right(MPI_Comm comm) {
  int one = 1, comm_size;
  MPI_Comm_size(comm, &comm_size);
  MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, comm);
  return one == comm_size;
}

/* A library that frees its requests in MPI_Finalize. Its attribute was the first on MPI_COMM_SELF, so it is
 * deleted last. */
static MPI_Request persistents[2];
static int first_key;

static int end_library(MPI_Comm comm, int key, void* value, void* extra) {
  MPI_Status status;
  int flag = 0, cancelled = 1, index = 0, num = 0, indices[2];
  MPI_Request* const request = &persistents[0];
  (void)comm, (void)key, (void)value, (void)extra;
  memset(&status, 0x77, sizeof status);
  MPI_Wait(request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  if (cancelled || status.MPI_SOURCE != MPI_ANY_SOURCE) exit(fail("the status of a wait is not empty"));
  memset(&status, 0x77, sizeof status);
  MPI_Test(request, &flag, &status);
  if (!flag || status.MPI_SOURCE != MPI_ANY_SOURCE) exit(fail("a test does not succeed"));
  flag = 0;
  MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
  if (!flag) exit(fail("an inactive request is outstanding"));
  MPI_Waitall(2, persistents, MPI_STATUSES_IGNORE);
  MPI_Waitany(2, persistents, &index, MPI_STATUS_IGNORE);
  MPI_Testsome(2, persistents, &num, indices, MPI_STATUSES_IGNORE);
  if (index != MPI_UNDEFINED || num != MPI_UNDEFINED) exit(fail("an inactive request has been completed"));
  for (int i = 0; i < 2; ++i) {
    if (persistents[i] == MPI_REQUEST_NULL) exit(fail("an inactive request has no handle"));
    if (MPI_Request_free(&persistents[i]) != MPI_SUCCESS) exit(fail("a request is not freed"));
    if (persistents[i] != MPI_REQUEST_NULL) exit(fail("a freed request has a handle"));
  }
  if (rank == 0) printf("ended\n");
  return MPI_SUCCESS;
}

static int freed_in_finalize(void) {
  static int in = 1, out[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Allreduce_init(&in, &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistents[i]);
    MPI_Start(&persistents[i]);
    MPI_Wait(&persistents[i], MPI_STATUS_IGNORE);
    if (out[i] != size) return fail("wrong sum");
  }
  return 0;
}

/* A type whose attribute counts its copies, and does not let it be copied. */
static int num_copies;

static int copy_once(MPI_Datatype type, int key, void* extra, void* in, void* out, int* flag) {
  (void)type, (void)key, (void)extra;
  *(void**)out = in;
  *flag = 1;
  ++num_copies;
  return MPI_ERR_OTHER;
}

static int attributes_of_types(void) {
  int values[20], key;
  MPI_Datatype type;
  MPI_Request request;
  MPI_Type_create_keyval(copy_once, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
  MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &type);
  MPI_Type_commit(&type);
  MPI_Type_set_attr(type, key, values);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!sum_is_right(MPI_COMM_WORLD)) return fail("wrong sum");
  for (int i = 0; i < 20; ++i) values[i] = rank == 0 ? i : -1;
  if (MPI_Ibcast(values, 10, type, 0, MPI_COMM_WORLD, &request) != MPI_SUCCESS) return fail("not started");
  MPI_Type_free(&type);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Type_free_keyval(&key);
  for (int i = 0; i < 20; i += 2)
    if (values[i] != i) return fail("wrong values");
  return num_copies == 0 ? 0 : fail("an attribute has been copied");
}

/* The next descriptor that the system would give. */
static int next_descriptor(void) {
  const int descriptor = dup(0);
  close(descriptor);
  return descriptor;
}

/* Makes communicators with few descriptors left, and calls on all of them. */
static int make_with(int descriptors_after_first, int met) {
  enum { kComms = 60 };
  MPI_Comm comms[kComms];
  MPI_Request requests[kComms];
  static int in = 1, out[kComms];
  struct rlimit limit;
  if (met && !sum_is_right(MPI_COMM_WORLD)) return fail("wrong sum");
  getrlimit(RLIMIT_NOFILE, &limit);
  /* Ranks run out of them at different times. */
  limit.rlim_cur = (rlim_t)(next_descriptor() + descriptors_after_first + 5 * (rank % 2));
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return fail("no limit");
  for (int i = 0; i < kComms; ++i) {
    int value = rank == 0 ? i : -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    MPI_Bcast(&value, 1, MPI_INT, 0, comms[i]);
    if (value != i) return fail("wrong value");
  }
  for (int i = 0; i < kComms; ++i)
    if (!sum_is_right(comms[i])) return fail("wrong sum of a duplicate");
  for (int i = 0; i < kComms; ++i) {
    MPI_Allreduce_init(&in, &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    MPI_Start(&requests[i]);
  }
  MPI_Waitall(kComms, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kComms; ++i) {
    if (out[i] != size) return fail("wrong persistent sum");
    MPI_Request_free(&requests[i]);
    MPI_Comm_free(&comms[i]);
  }
  return 0;
}

static int few_descriptors(void) {
  return make_with(16, 1);
}

/* The first communicator of the program meets the limit. */
static int no_descriptors(void) {
  return make_with(0, 0);
}

static volatile int stops;

static void* keeps_allocating(void* nothing) {
  while (!stops) {
    void* memory = NULL;
    MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory);
    MPI_Free_mem(memory);
  }
  return nothing;
}

/* A child frees memory of its parent, whatever the parent's threads were doing at the fork. */
static int child_frees(void) {
  pthread_t thread;
  void* memory = NULL;
  int wrong = 0;
  if (!sum_is_right(MPI_COMM_WORLD)) return fail("wrong sum");
  MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory);
  pthread_create(&thread, NULL, keeps_allocating, NULL);
  for (int i = 0; i < 500 && !wrong; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
      _exit(MPI_Free_mem(memory) == MPI_SUCCESS ? 0 : 3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    wrong = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  stops = 1;
  pthread_join(thread, NULL);
  MPI_Free_mem(memory);
  if (!sum_is_right(MPI_COMM_WORLD)) return fail("wrong sum after fork");
  return wrong ? fail("a child does not come back from MPI_Free_mem") : 0;
}

/* Only the last rank has no memory to unpack what it receives: all ranks get an error. */
static int short_of_memory(int is_nonblocking) {
  enum { kInts = 16 << 20 };
  const int is_short = rank == size - 1;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0, code;
  struct rlimit limit, before;
  MPI_Datatype type;
  MPI_Request request = MPI_REQUEST_NULL;
  int* values = calloc(2 * (size_t)kInts, sizeof *values);
  MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &type);
  MPI_Type_commit(&type);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!sum_is_right(MPI_COMM_WORLD)) return fail("wrong sum");
  getrlimit(RLIMIT_AS, &before);
  limit = before;
  limit.rlim_cur = 1 << 20;
  if (is_short) setrlimit(RLIMIT_AS, &limit);
  code = is_nonblocking ? MPI_Ibcast(values, kInts, is_short ? type : MPI_INT, 0, MPI_COMM_WORLD, &request)
                        : MPI_Bcast(values, kInts, is_short ? type : MPI_INT, 0, MPI_COMM_WORLD);
  if (is_short) setrlimit(RLIMIT_AS, &before);
  if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  /* No rank leaves before the others have their error. */
  PMPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&type);
  free(values);
  if (code == MPI_SUCCESS) return fail("a call that one rank had no memory for succeeded");
  MPI_Error_string(code, text, &length);
  if (!is_short && !strstr(text, "hips: ")) return fail(text);
  return 0;
}

/* Functions of Fortran, where this MPI has them. */
extern void mpi_waitsome_(const int*, int*, int*, int*, int*, int*) __attribute__((weak));
extern void mpi_testsome_(const int*, int*, int*, int*, int*, int*) __attribute__((weak));

/* A handle without a request is an error, and the output for the number of completed ones may be unset. */
static int stale_in_fortran(void) {
  int values[2] = {1, 1}, code = MPI_SUCCESS, num = 1 << 30, indices[1] = {-5}, statuses[64];
  const int one = 1;
  MPI_Request first, second;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!sum_is_right(MPI_COMM_WORLD)) return fail("wrong sum");
  MPI_Iallreduce(MPI_IN_PLACE, &values[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &first);
  MPI_Iallreduce(MPI_IN_PLACE, &values[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &second);
  int stale = MPI_Request_c2f(first);
  MPI_Wait(&first, MPI_STATUS_IGNORE);
  if (mpi_waitsome_) {
    mpi_waitsome_(&one, &stale, &num, indices, statuses, &code);
    if (code == MPI_SUCCESS) return fail("a stale request was completed");
    num = 1 << 30;
    mpi_testsome_(&one, &stale, &num, indices, statuses, &code);
    if (code == MPI_SUCCESS) return fail("a stale request was tested");
  }
  MPI_Wait(&second, MPI_STATUS_IGNORE);
  return 0;
}

static volatile sig_atomic_t arrived = 0;

static void note_arrival(int number) {
  (void)number;
  arrived = 1;
}

/* A sender of a large message that does only what HiPS does while it waits. */
static int progress(void) {
  enum { kBytes = 16 << 20 };
  char* buffer = calloc(kBytes, 1);
  int sender = getpid();
  if (rank == 0) {
    MPI_Request request;
    const double begin = MPI_Wtime();
    signal(SIGUSR1, note_arrival);
    memset(buffer, 7, kBytes);
    MPI_Send(&sender, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    MPI_Isend(buffer, kBytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
    while (!arrived && MPI_Wtime() < begin + 60) hips_mpi_progress(NULL);
    if (!arrived) return fail("the message waits for its sender to wait for it");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Recv(&sender, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    usleep(200000);
    MPI_Recv(buffer, kBytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    kill(sender, SIGUSR1);
    if (buffer[kBytes - 1] != 7) return fail("wrong message");
  }
  free(buffer);
  return 0;
}

/* More bytes in one element than an int can count; only the root passes such a type. */
static int huge_types(void) {
  const size_t part = (size_t)512 << 20, whole = 4 * part;
  MPI_Datatype part_type, whole_type;
  char* bytes = calloc(whole, 1);
  if (bytes == NULL) return fail("no memory");
  MPI_Type_contiguous((int)(part / sizeof(double)), MPI_DOUBLE, &part_type);
  MPI_Type_contiguous(4, part_type, &whole_type);
  MPI_Type_commit(&part_type);
  MPI_Type_commit(&whole_type);
  if (!sum_is_right(MPI_COMM_WORLD)) return fail("wrong sum");
  if (rank == 0)
    for (size_t i = 0; i < whole; i += 4096) bytes[i] = (char)(i / 4096 % 127);
  if (rank == 0)
    MPI_Bcast(bytes, 1, whole_type, 0, MPI_COMM_WORLD);
  else
    MPI_Bcast(bytes, 4, part_type, 0, MPI_COMM_WORLD);
  for (size_t i = 0; i < whole; i += 4096)
    if (bytes[i] != (char)(i / 4096 % 127) || bytes[i + 1] != 0) return fail("wrong bytes");
  MPI_Type_free(&whole_type);
  MPI_Type_free(&part_type);
  free(bytes);
  return 0;
}

static void add_ints(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

/* Ranks of different thread levels reduce by a function of theirs, in each form of the call. */
static int other_levels(void) {
  enum { kInts = 300, kTimes = 200 };
  int in[kInts], out[3][kInts];
  MPI_Op op;
  MPI_Request started, persistent;
  MPI_Op_create(add_ints, 1, &op);
  MPI_Allreduce_init(in, out[2], kInts, MPI_INT, op, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
  for (int round = 0; round < kTimes; ++round) {
    for (int i = 0; i < kInts; ++i) in[i] = i + round * rank;
    memset(out, 0, sizeof out);
    MPI_Iallreduce(in, out[0], kInts, MPI_INT, op, MPI_COMM_WORLD, &started);
    MPI_Allreduce(in, out[1], kInts, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    MPI_Wait(&started, MPI_STATUS_IGNORE);
    for (int i = 0; i < kInts; ++i) {
      const int sum = size * i + round * (size * (size - 1) / 2);
      for (int form = 0; form < 3; ++form)
        if (out[form][i] != sum) return fail("wrong sum by a function");
    }
  }
  MPI_Request_free(&persistent);
  MPI_Op_free(&op);
  return 0;
}

/* Of this rank, before MPI_Init. */
static int launched_rank(void) {
  const char* text = getenv("OMPI_COMM_WORLD_RANK");
  if (!text) text = getenv("PMI_RANK");
  return text ? atoi(text) : 0;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int (*run)(void);
  } kCases[] = {{"freed-in-finalize", freed_in_finalize},
                {"attributes-of-types", attributes_of_types},
                {"few-descriptors", few_descriptors},
                {"no-descriptors", no_descriptors},
                {"child-frees", child_frees},
                {"other-levels", other_levels},
                {"stale-in-fortran", stale_in_fortran},
                {"progress", progress},
                {"huge-types", huge_types}};
  const char* const what = argc > 1 ? argv[1] : "";
  int provided, result = 2;
  const int multiple =
      strcmp(what, "child-frees") == 0 || (strcmp(what, "other-levels") == 0 && launched_rank() % 2 == 1);
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "freed-in-finalize") == 0) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_library, &first_key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, first_key, NULL);
  }
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i)
    if (strcmp(what, kCases[i].name) == 0) result = kCases[i].run();
  if (strcmp(what, "short-of-memory") == 0 && argc > 2)
    result = short_of_memory(strcmp(argv[2], "ibcast") == 0);
  if (rank == 0 && result == 0) printf("ok\n");
  fflush(stdout);
  MPI_Finalize();
  return result;
}
