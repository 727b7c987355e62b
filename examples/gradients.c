/*
 * What data-parallel training asks of MPI, and nothing else: after every step each rank holds the gradient of
 * every tensor of a network, and all ranks need their sums.
 *
 *   mpirun -n 9 ./gradients resnet50
 *   mpirun -n 9 hips run -t bcube:3,1 ./gradients resnet50
 *
 * The tensors have the shapes of the real networks. Every sum is exact in float32, whatever the order of the
 * additions, so each element of each result is compared with ==.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- networks */

enum { kMaxTensors = 256 };

struct tensor {
  char name[48];
  size_t count;
};

struct network {
  struct tensor tensors[kMaxTensors]; /* in the order of the forward pass */
  int num_tensors;
  size_t num_parameters;
};

static void add(struct network* net, const char* layer, const char* part, size_t count) {
  struct tensor* tensor = &net->tensors[net->num_tensors++];
  snprintf(tensor->name, sizeof tensor->name, "%s.%s", layer, part);
  tensor->count = count;
  net->num_parameters += count;
}

/* A layer with a bias: fully connected, or a convolution with `in` = channels * height * width of its kernel.
 */
static void add_layer(struct network* net, const char* name, size_t in, size_t out) {
  add(net, name, "weight", in * out);
  add(net, name, "bias", out);
}

/* A convolution without bias, then batch normalisation with a scale and a shift for every channel. */
static void add_conv_bn(struct network* net, const char* conv, const char* bn, size_t in, size_t out) {
  add(net, conv, "weight", in * out);
  add_layer(net, bn, 1, out);
}

static void mnist_mlp(struct network* net) {
  add_layer(net, "fc1", 28 * 28, 1024);
  add_layer(net, "fc2", 1024, 256);
  add_layer(net, "fc3", 256, 10);
}

/* LeCun et al. 1998, with all feature maps connected. */
static void lenet5(struct network* net) {
  add_layer(net, "conv1", 1 * 5 * 5, 6);
  add_layer(net, "conv2", 6 * 5 * 5, 16);
  add_layer(net, "fc1", 16 * 5 * 5, 120);
  add_layer(net, "fc2", 120, 84);
  add_layer(net, "fc3", 84, 10);
}

/* He et al. 2015: four groups of bottleneck blocks, 3, 4, 6 and 3 of them. */
static void resnet50(struct network* net) {
  static const int kBlocks[4] = {3, 4, 6, 3};
  size_t in = 64;
  add_conv_bn(net, "conv1", "bn1", 3 * 7 * 7, in);
  for (int group = 0; group < 4; ++group) {
    const size_t width = (size_t)64 << group, out = 4 * width;
    for (int block = 0; block < kBlocks[group]; ++block) {
      char conv[32], bn[32];
      const size_t shapes[3][2] = {{in, width}, {width * 3 * 3, width}, {width, out}};
      for (int i = 0; i < 3; ++i) {
        snprintf(conv, sizeof conv, "layer%d.%d.conv%d", group + 1, block, i + 1);
        snprintf(bn, sizeof bn, "layer%d.%d.bn%d", group + 1, block, i + 1);
        add_conv_bn(net, conv, bn, shapes[i][0], shapes[i][1]);
      }
      if (block == 0) { /* the shortcut has to change the number of channels too */
        snprintf(conv, sizeof conv, "layer%d.0.downsample.0", group + 1);
        snprintf(bn, sizeof bn, "layer%d.0.downsample.1", group + 1);
        add_conv_bn(net, conv, bn, in, out);
      }
      in = out;
    }
  }
  add_layer(net, "fc", in, 1000);
}

/* Simonyan and Zisserman 2014, configuration E. */
static void vgg19(struct network* net) {
  static const int kConvs[5] = {2, 2, 4, 4, 4};
  static const size_t kChannels[5] = {64, 128, 256, 512, 512};
  size_t in = 3;
  int layer = 0;
  for (int group = 0; group < 5; ++group) {
    for (int i = 0; i < kConvs[group]; ++i) {
      char name[32];
      snprintf(name, sizeof name, "conv%d", ++layer);
      add_layer(net, name, in * 3 * 3, kChannels[group]);
      in = kChannels[group];
    }
  }
  add_layer(net, "fc1", in * 7 * 7, 4096);
  add_layer(net, "fc2", 4096, 4096);
  add_layer(net, "fc3", 4096, 1000);
}

static const struct {
  const char* name;
  void (*build)(struct network*);
} kNetworks[] = {{"mnist-mlp", mnist_mlp}, {"lenet5", lenet5}, {"resnet50", resnet50}, {"vgg19", vgg19}};

enum { kNumNetworks = sizeof kNetworks / sizeof kNetworks[0] };

/* ---------------------------------------------------------------- values that add up exactly */

/*
 * Rank r's element i is (a + b) / 1024 with a = a(i, salt) in -64..63 and b = b(r) in 1..101, no two alike
 * among 101 ranks. The sum over n ranks is (n * a + sum of b) / 1024, an integer below 2^24 over a power of
 * two for up to 100,000 ranks, and so is every partial sum: no addition rounds. A rank that is left out or
 * counted twice changes the sum of b, a block in the wrong place changes a, a result of an earlier step or
 * another tensor the salt.
 */
static int element_value(size_t i, uint32_t salt) {
  return (int)(((uint32_t)(i + salt) * 2654435761u) >> 25) - 64;
}
static int rank_value(int rank) {
  return rank * 37 % 101 + 1;
}

static void fill(float* gradient, size_t count, int rank, uint32_t salt) {
  const int b = rank_value(rank);
  for (size_t i = 0; i < count; ++i) gradient[i] = (float)(element_value(i, salt) + b) / 1024.0f;
}

/* How many elements are wrong; `first` is the first of them. */
static size_t count_wrong(const float* sum, size_t count, int num_ranks, uint32_t salt, size_t* first) {
  int b = 0;
  for (int rank = 0; rank < num_ranks; ++rank) b += rank_value(rank);
  size_t num_wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    const float expected = (float)(num_ranks * element_value(i, salt) + b) / 1024.0f;
    if (sum[i] != expected && num_wrong++ == 0) *first = i;
  }
  return num_wrong;
}

/* ---------------------------------------------------------------- the program */

struct options {
  int network;
  int steps;
  int warmup;
  int check;
  int list;
};

static void usage(FILE* out) {
  fprintf(out,
          "usage: gradients NETWORK [--steps N] [--warmup N] [--no-check] [--list]\n"
          "  NETWORK     mnist-mlp, lenet5, resnet50 or vgg19\n"
          "  --steps N   measured steps (default 5)\n"
          "  --warmup N  steps before them (default 1)\n"
          "  --no-check  do not compare the results\n"
          "  --list      print the tensors and stop\n");
}

/* Returns -1 to go on, else the exit status. Only rank 0 speaks: all ranks see the same arguments. */
static int parse(int argc, char** argv, int rank, struct options* options) {
  *options = (struct options){.network = -1, .steps = 5, .warmup = 1, .check = 1, .list = 0};
  for (int i = 1; i < argc; ++i) {
    const char* arg = argv[i];
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
      if (rank == 0) usage(stdout);
      return 0;
    }
    if (strcmp(arg, "--no-check") == 0) {
      options->check = 0;
    } else if (strcmp(arg, "--list") == 0) {
      options->list = 1;
    } else if (strcmp(arg, "--steps") == 0 || strcmp(arg, "--warmup") == 0) {
      const int least = strcmp(arg, "--steps") == 0 ? 1 : 0;
      const char* text = i + 1 < argc ? argv[++i] : "";
      char* end;
      const long value = strtol(text, &end, 10);
      if (end == text || *end != '\0' || value < least || value > 1000000) {
        if (rank == 0)
          fprintf(stderr, "gradients: %s \"%s\": a number from %d to 1000000 is needed\n", arg, text, least);
        return 2;
      }
      *(least ? &options->steps : &options->warmup) = (int)value;
    } else if (options->network < 0 && arg[0] != '-') {
      for (int n = 0; n < kNumNetworks; ++n) {
        if (strcmp(arg, kNetworks[n].name) == 0) options->network = n;
      }
      if (options->network < 0) {
        if (rank == 0)
          fprintf(stderr, "gradients: no network \"%s\": mnist-mlp, lenet5, resnet50 or vgg19\n", arg);
        return 2;
      }
    } else {
      if (rank == 0) fprintf(stderr, "gradients: unknown argument \"%s\"; see --help\n", arg);
      return 2;
    }
  }
  if (options->network < 0) {
    if (rank == 0) usage(stderr);
    return 2;
  }
  return -1;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* One training step: sums the gradients, last layer first, as the backward pass makes them. Returns the
 * seconds of the slowest rank; adds to *num_wrong. */
static double step(const struct network* net, float* const* gradients, const struct options* options,
                   int index, int rank, int num_ranks, size_t* num_wrong) {
  for (int t = 0; t < net->num_tensors; ++t) {
    fill(gradients[t], net->tensors[t].count, rank, (uint32_t)(index * kMaxTensors + t));
  }

  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int t = net->num_tensors - 1; t >= 0; --t) {
    MPI_Allreduce(MPI_IN_PLACE, gradients[t], (int)net->tensors[t].count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  const double mine = MPI_Wtime() - begin;
  double slowest = 0; /* of other ranks than 0 */
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

  for (int t = 0; options->check && t < net->num_tensors; ++t) {
    const uint32_t salt = (uint32_t)(index * kMaxTensors + t);
    size_t first = 0;
    const size_t wrong = count_wrong(gradients[t], net->tensors[t].count, num_ranks, salt, &first);
    if (wrong > 0 && *num_wrong == 0) {
      fprintf(stderr,
              "gradients: rank %d, step %d: %zu of %zu elements of %s are wrong, the first is [%zu] = %g\n",
              rank, index, wrong, net->tensors[t].count, net->tensors[t].name, first,
              (double)gradients[t][first]);
    }
    *num_wrong += wrong;
  }
  return slowest;
}

static void report(const struct network* net, const struct options* options, int num_ranks, double* seconds,
                   unsigned long long num_wrong) {
  const double bytes = (double)net->num_parameters * sizeof(float);
  qsort(seconds, (size_t)options->steps, sizeof *seconds, ascending);
  const double median = seconds[options->steps / 2];
  const double algbw = bytes / median / 1e9;
  const double busbw = algbw * 2 * (num_ranks - 1) / num_ranks; /* what each rank sends, per second */
  printf("time per step    %.3f ms (median of %d; %.3f to %.3f)\n", median * 1e3, options->steps,
         seconds[0] * 1e3, seconds[options->steps - 1] * 1e3);
  printf("bandwidth        %.3f GB/s of gradients (algbw), %.3f GB/s per rank (busbw)\n", algbw, busbw);
  if (!options->check) {
    printf("check            none\n");
  } else if (num_wrong > 0) {
    printf("check            FAILED: %llu elements are wrong\n", num_wrong);
  } else {
    printf("check            every element of every rank and step is exact\n");
  }
  printf(
      "RESULT network=%s ranks=%d tensors=%d parameters=%zu bytes=%.0f steps=%d median_s=%.9f min_s=%.9f "
      "max_s=%.9f "
      "algbw_GBps=%.6f busbw_GBps=%.6f wrong=",
      kNetworks[options->network].name, num_ranks, net->num_tensors, net->num_parameters, bytes,
      options->steps, median, seconds[0], seconds[options->steps - 1], algbw, busbw);
  if (options->check) {
    printf("%llu\n", num_wrong);
  } else {
    printf("unchecked\n");
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, num_ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);

  struct options options;
  const int status = parse(argc, argv, rank, &options);
  if (status >= 0) {
    MPI_Finalize();
    return status;
  }
  struct network net = {.num_tensors = 0, .num_parameters = 0};
  kNetworks[options.network].build(&net);
  if (rank == 0) {
    printf("%s: %d tensors, %zu parameters, %.2f MB of float32 gradients; %d ranks\n",
           kNetworks[options.network].name, net.num_tensors, net.num_parameters,
           (double)net.num_parameters * sizeof(float) / 1e6, num_ranks);
    for (int t = 0; options.list && t < net.num_tensors; ++t) {
      printf("  %-28s %10zu\n", net.tensors[t].name, net.tensors[t].count);
    }
    fflush(stdout);
  }
  if (options.list) {
    MPI_Finalize();
    return 0;
  }

  float* gradients[kMaxTensors];
  for (int t = 0; t < net.num_tensors; ++t) {
    gradients[t] = malloc(net.tensors[t].count * sizeof(float));
    if (gradients[t] == NULL) {
      fprintf(stderr, "gradients: rank %d has no memory for %s\n", rank, net.tensors[t].name);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  double* seconds = calloc((size_t)options.steps, sizeof(double));
  if (seconds == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  size_t num_wrong = 0;
  for (int index = -options.warmup; index < options.steps; ++index) {
    const double elapsed = step(&net, gradients, &options, index, rank, num_ranks, &num_wrong);
    if (index >= 0) seconds[index] = elapsed;
  }

  const unsigned long long my_wrong = num_wrong;
  unsigned long long all_wrong = 0;
  MPI_Allreduce(&my_wrong, &all_wrong, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) report(&net, &options, num_ranks, seconds, all_wrong);

  free(seconds);
  for (int t = 0; t < net.num_tensors; ++t) free(gradients[t]);
  MPI_Finalize();
  return all_wrong > 0;
}
