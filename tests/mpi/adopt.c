/*
 * Communicators that live long, or not: what the interposer does with them is in its report.
 *
 *   adopt calls N ELEMENTS   N allreduces on MPI_COMM_WORLD
 *   adopt duplicates N KEPT  N duplicates of it with three allreduces each; KEPT of them stay open until the end
 *   adopt renewed N CALLS    N duplicates, one after the other, with CALLS allreduces each
 *   adopt after N CALLS      1,000 allreduces on MPI_COMM_WORLD, then as "renewed"
 *   adopt levels N CALLS     as "after", and every other rank asks for MPI_THREAD_MULTIPLE
 *   adopt halves N CALLS     N halves of it, one after the other, with CALLS allreduces and a persistent one each
 *   adopt leaders N          N allreduces on a duplicate of ranks 0 and 1, 2,000 on ranks 1 and 2, N on the former again
 *   adopt nonblocking N      N non-blocking allreduces, then two blocking ones
 *   adopt parts N            splits in turn, as many calls on each as its number says, some on both parts of the world
 *
 * Every result is checked. Prints "wrong W" and, after the calls, how many descriptors rank 0 has more than after MPI_Init.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

static int g_wrong;

static int num_descriptors(void) {
  int num = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder)) ++num;
  closedir(folder);
  return num;
}

static void check_allreduce(MPI_Comm comm, int call, int elements) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int* in = malloc(sizeof(int) * (size_t)elements);
  int* out = malloc(sizeof(int) * (size_t)elements);
  for (int i = 0; i < elements; ++i) in[i] = rank + call + i;
  if (MPI_Allreduce(in, out, elements, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS) ++g_wrong;
  for (int i = 0; i < elements; ++i) g_wrong += out[i] != size * (size - 1) / 2 + size * (call + i);
  free(in);
  free(out);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* const place = getenv(getenv("PMI_RANK") ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK");
  int level = MPI_THREAD_SINGLE;
  if (strcmp(argv[1], "levels") == 0 && place && atoi(place) % 2 == 0) level = MPI_THREAD_MULTIPLE;
  MPI_Init_thread(&argc, &argv, level, &level);
  const int num = atoi(argv[2]);
  const int extra = argc > 3 ? atoi(argv[3]) : 0;
  const int before = num_descriptors();
  if (strcmp(argv[1], "calls") == 0) {
    for (int call = 0; call < num; ++call) check_allreduce(MPI_COMM_WORLD, call, extra);
  } else if (strcmp(argv[1], "renewed") == 0 || strcmp(argv[1], "after") == 0 ||
             strcmp(argv[1], "levels") == 0) {
    for (int call = 0; argv[1][0] != 'r' && call < 1000; ++call) check_allreduce(MPI_COMM_WORLD, call, 1);
    for (int i = 0; i < num; ++i) {
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      for (int call = 0; call < extra; ++call) check_allreduce(comm, call, 1);
      MPI_Comm_free(&comm);
    }
  } else if (strcmp(argv[1], "halves") == 0) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < num; ++i) {
      MPI_Comm half;
      MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
      for (int call = 0; call < extra; ++call) check_allreduce(half, call, 1);
      int size, one = 1, sum = 0;
      MPI_Comm_size(half, &size);
      MPI_Request request;
      MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, half, MPI_INFO_NULL, &request);
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      g_wrong += sum != size;
      MPI_Request_free(&request);
      MPI_Comm_free(&half);
    }
  } else if (strcmp(argv[1], "leaders") == 0) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm met, node, leaders;
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &met);
    MPI_Comm_split(MPI_COMM_WORLD, rank >= 1 && rank < 3 ? 0 : MPI_UNDEFINED, rank, &leaders);
    for (int call = 0; met != MPI_COMM_NULL && call < 2000; ++call) check_allreduce(met, call, 1);
    if (met != MPI_COMM_NULL) MPI_Comm_dup(met, &node);
    for (int call = 0; met != MPI_COMM_NULL && call < num; ++call) check_allreduce(node, call, 1);
    for (int call = 0; leaders != MPI_COMM_NULL && call < 2000; ++call) check_allreduce(leaders, call, 1);
    for (int call = 0; met != MPI_COMM_NULL && call < num; ++call) check_allreduce(node, call, 1);
    if (met != MPI_COMM_NULL) MPI_Comm_free(&node);
    if (met != MPI_COMM_NULL) MPI_Comm_free(&met);
    if (leaders != MPI_COMM_NULL) MPI_Comm_free(&leaders);
  } else if (strcmp(argv[1], "nonblocking") == 0) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int call = 0; call < num; ++call) {
      int one = 1, sum = 0;
      MPI_Request request;
      MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      g_wrong += sum != size;
    }
    for (int call = 0; call < 2; ++call) check_allreduce(MPI_COMM_WORLD, call, 1);
  } else if (strcmp(argv[1], "duplicates") == 0) {
    MPI_Comm* kept = malloc(sizeof(MPI_Comm) * (size_t)(extra + 1));
    for (int i = 0; i < num; ++i) {
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      for (int call = 0; call < 3; ++call) check_allreduce(comm, i + call, 1);
      if (i < extra)
        kept[i] = comm;
      else
        MPI_Comm_free(&comm);
    }
    for (int i = 0; i < extra && i < num; ++i) MPI_Comm_free(&kept[i]);
    free(kept);
  } else {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i <= num; ++i) {
      MPI_Comm part;
      const int colour = rank % (1 + i % 3);
      MPI_Comm_split(MPI_COMM_WORLD, colour, i % 2 ? rank : -rank, &part);
      // Long vectors on some: their part is adopted after a few calls, the other part's is not.
      for (int call = 0; call < i; ++call) check_allreduce(part, call, colour == 1 ? 200000 : 7);
      check_allreduce(MPI_COMM_WORLD, i, 11);
      MPI_Comm_free(&part);
    }
  }
  const int after = num_descriptors();
  int all_wrong = 0, rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Reduce(&g_wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d\ndescriptors %d\n", all_wrong, after - before);
  MPI_Finalize();
  return 0;
}
