/*
 * Ordinary MPI programs, each of which uses MPI_Allreduce in a manner that an interposer can break; the first
 * argument selects one. Exit status 0 and "ok" from rank 0 where everything conforms to MPI.
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;

static int fail(const char* what) {
  fprintf(stderr, "rank %d: %s\n", rank, what);
  return 1;
}

static int sum_is_right(MPI_Comm comm, int count) {
  int comm_size, ok = 1;
  MPI_Comm_size(comm, &comm_size);
  double* buffer = malloc(sizeof(double) * (size_t)count);
  for (int i = 0; i < count; ++i) buffer[i] = i;
  MPI_Allreduce(MPI_IN_PLACE, buffer, count, MPI_DOUBLE, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) ok = ok && buffer[i] == (double)i * comm_size;
  free(buffer);
  return ok;
}

/* A rank that waits in the allreduce still has to send its neighbour the rest of a large message. */
static int outstanding_large_message(void) {
  const int count = 4 << 20;
  char* out = malloc((size_t)count);
  char* in = calloc((size_t)count, 1);
  MPI_Request request;
  memset(out, rank + 1, (size_t)count);
  for (int root = 0; root < size; ++root) {
    const int target = (root + 1) % size;
    if (rank == root) MPI_Isend(out, count, MPI_CHAR, target, 7, MPI_COMM_WORLD, &request);
    if (rank == target) MPI_Recv(in, count, MPI_CHAR, root, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!sum_is_right(MPI_COMM_WORLD, 10)) return fail("wrong sum");
    if (rank == root) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (in[0] != (rank + size - 1) % size + 1 || in[count - 1] != in[0]) return fail("wrong message");
  free(in);
  free(out);
  return 0;
}

/* A rank that waits in the allreduce still has to serve its windows, which its neighbour adds to. */
static int windows(void) {
  MPI_Win window[3];
  MPI_Aint remote[3] = {0, 0, 0};
  int own = 0, *mine[3] = {&own, NULL, calloc(1, sizeof(int))}, one = 1;
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  MPI_Win_create(mine[0], sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window[0]);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine[1], &window[1]);
  *mine[1] = 0;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window[2]);
  MPI_Win_attach(window[2], mine[2], sizeof(int));
  MPI_Get_address(mine[2], &remote[2]);
  MPI_Sendrecv_replace(&remote[2], 1, MPI_AINT, last, 9, next, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!sum_is_right(MPI_COMM_WORLD, 10)) return fail("wrong sum");
  for (int round = 0; round < 3 * size; ++round) {
    if (round % size == rank) {
      for (int i = 0; i < 3; ++i) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window[i]);
        MPI_Accumulate(&one, 1, MPI_INT, next, remote[i], 1, MPI_INT, MPI_SUM, window[i]);
        MPI_Win_unlock(next, window[i]);
      }
    }
    if (!sum_is_right(MPI_COMM_WORLD, 10)) return fail("wrong sum");
  }
  for (int i = 0; i < 3; ++i) {
    int found = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window[i]);
    found = *mine[i];
    MPI_Win_unlock(rank, window[i]);
    if (found != 3) return fail("the neighbour's additions are missing");
  }
  MPI_Win_detach(window[2], mine[2]);
  for (int i = 0; i < 3; ++i) MPI_Win_free(&window[i]);
  free(mine[2]);
  return 0;
}

/* Memory of MPI_Alloc_mem of several sizes, and of malloc on other ranks; freed and allocated again. */
static int allocated_memory(void) {
  const int counts[] = {1, 1000, 20000, 300000};
  for (int round = 0; round < 12; ++round) {
    const int count = counts[round % 4], is_mine = (round / 4 + rank) % 3 != 0;
    const size_t bytes = sizeof(double) * (size_t)count;
    double *in = malloc(bytes), *out = NULL;
    if (is_mine) {
      if (MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &out) != MPI_SUCCESS) return fail("no memory");
    } else {
      out = malloc(bytes);
    }
    for (int i = 0; i < count; ++i) in[i] = out[i] = i + rank;
    MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i)
      if (out[i] != (double)i * size + size * (size - 1) / 2.0) return fail("wrong sum in place");
    MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i)
      if (out[i] != i + size - 1 || in[i] != i + rank) return fail("wrong maximum");
    MPI_Bcast(out, count, MPI_DOUBLE, round % size, MPI_COMM_WORLD);
    if (is_mine) {
      if (MPI_Free_mem(out) != MPI_SUCCESS) return fail("not freed");
    } else {
      free(out);
    }
    free(in);
  }
  return 0;
}

/* Whether the memory is shared with other processes, by the mappings of this one. */
static int is_shared(const void* memory) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  int shared = 0;
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long begin, end;
    if (sscanf(line, "%lx-%lx", &begin, &end) == 2 && (unsigned long)memory >= begin &&
        (unsigned long)memory < end)
      shared = strstr(line, "memfd:hips-") != NULL;
  }
  if (maps) fclose(maps);
  return shared;
}

/* Pages that are shared cost more: a program that never gives them to a collective soon gets native MPI's. */
static int unused_memory(void) {
  enum { kBytes = 1 << 20, kTimes = 200 };
  int num_shared = 0;
  char* memory = NULL;
  int value = rank, sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < kTimes; ++i) {
    MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &memory);
    memory[0] = memory[kBytes - 1] = 1;
    num_shared += is_shared(memory);
    MPI_Free_mem(memory);
  }
  if (num_shared == 0 || num_shared > kTimes / 10) return fail("too much or no memory was shared");
  /* Once some is used, all is shared again. */
  for (int i = 0; i < kTimes; ++i) {
    MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &memory);
    memset(memory, rank, kBytes);
    MPI_Allreduce(MPI_IN_PLACE, memory, kBytes, MPI_SIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
    if (memory[0] != size - 1 || memory[kBytes - 1] != size - 1) return fail("wrong maximum");
    num_shared = is_shared(memory);
    MPI_Free_mem(memory);
  }
  return num_shared ? 0 : fail("memory that collectives use is not shared");
}

struct thread_args {
  MPI_Comm comm;
  int ok;
};

static void* many_sums(void* pointer) {
  struct thread_args* args = pointer;
  for (int i = 0; i < 200 && args->ok; ++i) args->ok = sum_is_right(args->comm, 1 + i * 7);
  return NULL;
}

/* MPI_THREAD_MULTIPLE: threads of a rank on communicators of their own, at the same time. */
static int threads(void) {
  enum { kThreads = 3 };
  pthread_t ids[kThreads];
  struct thread_args args[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &args[i].comm);
    args[i].ok = 1;
  }
  for (int i = 0; i < kThreads; ++i) pthread_create(&ids[i], NULL, many_sums, &args[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(ids[i], NULL);
  for (int i = 0; i < kThreads; ++i) {
    MPI_Comm_free(&args[i].comm);
    if (!args[i].ok) return fail("wrong sum in a thread");
  }
  return 0;
}

/* Children of a rank are not ranks: they do not load the library that was preloaded into it. */
static int children(void) {
  if (!sum_is_right(MPI_COMM_WORLD, 10)) return fail("wrong sum before fork");
  const pid_t child = fork();
  if (child == 0) {
    execlp("sh", "sh", "-c",
           "case \"$LD_PRELOAD\" in *hips*) exit 1;; esac; ! grep -q libhips_mpi /proc/self/maps",
           (char*)NULL);
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return fail("a child loaded the interposer");
  if (!sum_is_right(MPI_COMM_WORLD, 10)) return fail("wrong sum after fork");
  return 0;
}

/* The same call many times, checked each time. */
static int repeat(int count, int calls) {
  for (int i = 0; i < calls; ++i)
    if (!sum_is_right(MPI_COMM_WORLD, count)) return fail("wrong sum");
  return 0;
}

/* With MPI_ERRORS_RETURN a failed call returns a code, and MPI_Error_string gives the reason. */
static int errors_return(void) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0, values[2] = {rank, rank}, sums[2];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int code = MPI_Allreduce(values, sums, 1 + rank % 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (code == MPI_SUCCESS) return fail("ranks with different counts got MPI_SUCCESS");
  MPI_Error_string(code, text, &length);
  if (!strstr(text, "hips: ") || !strstr(text, "count")) {
    fprintf(stderr, "rank %d: unclear text \"%s\"\n", rank, text);
    return 1;
  }
  return 0;
}

/* Native MPI reports the null communicator as its own error. */
static int null_communicator(void) {
  int value = 1, sum = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!sum_is_right(MPI_COMM_WORLD, 1)) return fail("wrong sum");
  int class = MPI_SUCCESS;
  const int code = MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL);
  MPI_Error_class(code, &class);
  return class == MPI_ERR_COMM ? 0 : fail("MPI_COMM_NULL is not an error of class MPI_ERR_COMM");
}

/* A fast rank leaves right after its last call. */
static int leave_early(void) {
  for (int i = 0; i < 20; ++i)
    if (!sum_is_right(MPI_COMM_WORLD, 1000)) return fail("wrong sum");
  if (rank == size - 1) usleep(200000);
  return 0;
}

static void add_ints(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

/* Sums of floats whose last bits depend on the order of reduction; rank 0 prints a hash of them. All ranks
 * have the same bits. */
static int reduction_order(int max_count, unsigned seed) {
  unsigned long long hash = 14695981039346656037ull, hashes[2];
  for (int count = 1; count <= max_count; count = count * 3 + 1) {
    float* values = malloc(sizeof(float) * (size_t)count);
    srandom(seed + (unsigned)rank * 7919u);
    for (int i = 0; i < count; ++i) values[i] = (float)random() / (float)(1 + random() % 1000) - 1e4f;
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof(float) * (size_t)count; ++i)
      hash = (hash ^ ((const unsigned char*)values)[i]) * 1099511628211ull;
    free(values);
  }
  hashes[0] = hash;
  MPI_Bcast(hashes, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("bits %llx\n", hash);
  return hashes[0] == hash ? 0 : fail("bits differ from those of rank 0");
}

/* Does not return by itself: one rank passes something else. */
static int mismatch(const char* what) {
  int ints[64] = {0}, sums[64], long_in[300] = {0}, long_out[300];
  float floats[64] = {0}, float_sums[64];
  MPI_Op user_op;
  MPI_Datatype long_type;
  MPI_Op_create(add_ints, 1, &user_op);
  MPI_Type_contiguous(300, MPI_INT, &long_type);
  MPI_Type_commit(&long_type);
  if (!sum_is_right(MPI_COMM_WORLD, 100)) return fail("wrong sum");
  const int differs = rank == size - 1;
  if (strcmp(what, "count") == 0)
    MPI_Allreduce(ints, sums, differs ? 8 : 16, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(what, "zero") == 0)
    MPI_Allreduce(ints, sums, differs ? 0 : 16, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(what, "op") == 0)
    MPI_Allreduce(ints, sums, 16, MPI_INT, differs ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(what, "other-op") == 0)
    MPI_Allreduce(ints, sums, 16, MPI_INT, differs ? user_op : MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(what, "type") == 0 && differs)
    MPI_Allreduce(floats, float_sums, 16, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(what, "other-type") == 0 && differs)
    MPI_Allreduce(long_in, long_out, 1, long_type, user_op, MPI_COMM_WORLD);
  else if (strcmp(what, "pair") == 0 && differs)
    MPI_Allreduce(ints, sums, 8, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD);
  else
    MPI_Allreduce(ints, sums, 16, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Barrier(MPI_COMM_WORLD);
  return 0;
}

/* Many calls of one size; then the last rank makes one more, and the others make one of another size. */
static int mismatch_after(int count, int calls) {
  if (repeat(count, calls) != 0) return 1;
  sum_is_right(MPI_COMM_WORLD, rank == size - 1 ? count : 16);
  PMPI_Barrier(MPI_COMM_WORLD);
  return 0;
}

static void die(int number) {
  (void)number;
  raise(SIGKILL);
}

/* One rank is killed some time after the first allreduce, at whatever point of the program. */
static int killed_at(int victim, int microseconds) {
  if (!sum_is_right(MPI_COMM_WORLD, 100)) return fail("wrong sum");
  if (rank == victim) {
    const struct itimerval timer = {{0, 0}, {microseconds / 1000000, microseconds % 1000000}};
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &timer, NULL);
  }
  const double begin = MPI_Wtime();
  for (int i = 0; MPI_Wtime() < begin + 30; ++i)
    if (!sum_is_right(MPI_COMM_WORLD, 1 + i * 97 % 50000)) return fail("wrong sum");
  return fail("nobody died");
}

/* MPI_Finalize may come from an exit handler. */
static void finalize_at_exit(void) {
  MPI_Finalize();
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  int provided, result;
  MPI_Init_thread(&argc, &argv, strcmp(what, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "outstanding-large-message") == 0) {
    result = outstanding_large_message();
  } else if (strcmp(what, "windows") == 0) {
    result = windows();
  } else if (strcmp(what, "allocated-memory") == 0) {
    result = allocated_memory();
  } else if (strcmp(what, "unused-memory") == 0) {
    result = unused_memory();
  } else if (strcmp(what, "threads") == 0) {
    result = provided == MPI_THREAD_MULTIPLE ? threads() : fail("this MPI has no MPI_THREAD_MULTIPLE");
  } else if (strcmp(what, "children") == 0) {
    result = children();
  } else if (strcmp(what, "errors-return") == 0) {
    result = errors_return();
  } else if (strcmp(what, "null-communicator") == 0) {
    result = null_communicator();
  } else if (strcmp(what, "leave-early") == 0) {
    result = leave_early();
  } else if (strcmp(what, "finalize-at-exit") == 0) {
    result = sum_is_right(MPI_COMM_WORLD, 100) ? 0 : fail("wrong sum");
  } else if (strcmp(what, "exit-status") == 0) {
    result = sum_is_right(MPI_COMM_WORLD, 100) ? 7 : 1;
  } else if (strcmp(what, "repeat") == 0 && argc > 3) {
    result = repeat(atoi(argv[2]), atoi(argv[3]));
  } else if (strcmp(what, "reduction-order") == 0 && argc > 3) {
    result = reduction_order(atoi(argv[2]), (unsigned)atoi(argv[3]));
  } else if (strcmp(what, "mismatch") == 0 && argc > 2) {
    result = mismatch(argv[2]);
  } else if (strcmp(what, "mismatch-after") == 0 && argc > 3) {
    result = mismatch_after(atoi(argv[2]), atoi(argv[3]));
  } else if (strcmp(what, "killed-at") == 0 && argc > 3) {
    result = killed_at(atoi(argv[2]), atoi(argv[3]));
  } else {
    fprintf(stderr, "unknown case \"%s\"\n", what);
    result = 2;
  }
  if (rank == 0 && result == 0) printf("ok\n");
  fflush(stdout);
  if (result == 0 && strcmp(what, "finalize-at-exit") == 0) {
    atexit(finalize_at_exit);
    exit(0);
  }
  MPI_Finalize();
  return result;
}
