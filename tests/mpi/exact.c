/*
 * An ordinary MPI program: calls MPI_Allreduce with many types, ops, counts and communicators, and compares
 * every element. Floating point values are small integers, so that every order of summing is exact.
 *
 * Rank 0 prints which calls a library should have taken ("expect taken CALLS BYTES") that has the predefined ops and
 * functions of the program for elements of up to 1024 bytes, and which it should have delegated
 * ("expect delegated CALLS REASON"); the driver compares that with the interposer's report.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REASONS 16

static int world_rank, world_size;
static long taken_calls, num_wrong;
static long long taken_bytes;
static const char* reasons[MAX_REASONS];
static long reason_calls[MAX_REASONS];
static int num_reasons;

static void expect_delegated(const char* reason) {
  int i;
  for (i = 0; i < num_reasons; ++i)
    if (strcmp(reasons[i], reason) == 0) break;
  if (i == num_reasons) reasons[num_reasons++] = reason;
  ++reason_calls[i];
}

static void wrong(const char* what, int i) {
  if (++num_wrong <= 5) fprintf(stderr, "rank %d: %s: element %d is wrong\n", world_rank, what, i);
}

/* The first seven types are tested with every op and count, the others with each op that is allowed for them.
 */
enum Group { kCInteger, kFloating, kComplex, kMultiLanguage, kCBool, kByte };
#define TYPES(X)                                                              \
  X(kInt, MPI_INT, int, kCInteger)                                            \
  X(kLong, MPI_LONG, long, kCInteger)                                         \
  X(kLongLong, MPI_LONG_LONG, long long, kCInteger)                           \
  X(kInt32, MPI_INT32_T, int32_t, kCInteger)                                  \
  X(kInt64, MPI_INT64_T, int64_t, kCInteger)                                  \
  X(kFloat, MPI_FLOAT, float, kFloating)                                      \
  X(kDouble, MPI_DOUBLE, double, kFloating)                                   \
  X(kSignedChar, MPI_SIGNED_CHAR, signed char, kCInteger)                     \
  X(kUnsignedChar, MPI_UNSIGNED_CHAR, unsigned char, kCInteger)               \
  X(kShort, MPI_SHORT, short, kCInteger)                                      \
  X(kUnsignedShort, MPI_UNSIGNED_SHORT, unsigned short, kCInteger)            \
  X(kUnsigned, MPI_UNSIGNED, unsigned, kCInteger)                             \
  X(kUnsignedLong, MPI_UNSIGNED_LONG, unsigned long, kCInteger)               \
  X(kUnsignedLongLong, MPI_UNSIGNED_LONG_LONG, unsigned long long, kCInteger) \
  X(kInt8, MPI_INT8_T, int8_t, kCInteger)                                     \
  X(kInt16, MPI_INT16_T, int16_t, kCInteger)                                  \
  X(kUint8, MPI_UINT8_T, uint8_t, kCInteger)                                  \
  X(kUint16, MPI_UINT16_T, uint16_t, kCInteger)                               \
  X(kUint32, MPI_UINT32_T, uint32_t, kCInteger)                               \
  X(kUint64, MPI_UINT64_T, uint64_t, kCInteger)                               \
  X(kAint, MPI_AINT, MPI_Aint, kMultiLanguage)                                \
  X(kOffset, MPI_OFFSET, MPI_Offset, kMultiLanguage)                          \
  X(kCount, MPI_COUNT, MPI_Count, kMultiLanguage)                             \
  X(kBool, MPI_C_BOOL, _Bool, kCBool)                                         \
  X(kBytes, MPI_BYTE, unsigned char, kByte)                                   \
  X(kComplexFloat, MPI_C_FLOAT_COMPLEX, float _Complex, kComplex)             \
  X(kComplexDouble, MPI_C_DOUBLE_COMPLEX, double _Complex, kComplex)          \
  X(kLongDouble, MPI_LONG_DOUBLE, long double, kFloating)

#define ENUMERATOR(NAME, TYPE, T, GROUP) NAME,
enum { TYPES(ENUMERATOR) kNumTypes };
#define NAME_OF(NAME, TYPE, T, GROUP) #TYPE,
static const char* const type_names[] = {TYPES(NAME_OF)};
#define GROUP_OF(NAME, TYPE, T, GROUP) GROUP,
static const enum Group groups[] = {TYPES(GROUP_OF)};

#define SIZE_OF(NAME, TYPE, T, GROUP) sizeof(T),
static const size_t sizes[] = {TYPES(SIZE_OF)};

static MPI_Datatype mpi_type(int type) {
#define HANDLE(NAME, TYPE, T, GROUP) \
  case NAME:                         \
    return TYPE;
  switch (type) { TYPES(HANDLE) }
  return MPI_DATATYPE_NULL;
}

static void put(void* buffer, int type, int i, long value) {
#define PUT(NAME, TYPE, T, GROUP) \
  case NAME:                      \
    ((T*)buffer)[i] = (T)value;   \
    break;
  switch (type) { TYPES(PUT) }
}

static int equals(const void* buffer, int type, int i, long value) {
#define EQUALS(NAME, TYPE, T, GROUP) \
  case NAME:                         \
    return ((const T*)buffer)[i] == (T)value;
  switch (type) { TYPES(EQUALS) }
  return 0;
}

enum { kSum, kProd, kMin, kMax, kBand, kBor, kBxor, kLand, kLor, kLxor, kUser, kNumOps };
static const char* const op_names[] = {"MPI_SUM",  "MPI_PROD", "MPI_MIN", "MPI_MAX",  "MPI_BAND", "MPI_BOR",
                                       "MPI_BXOR", "MPI_LAND", "MPI_LOR", "MPI_LXOR", "user op"};
static MPI_Op user_op;

static MPI_Op mpi_op(int op) {
  const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_BAND, MPI_BOR,
                        MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, user_op};
  return ops[op];
}

/* The standard's table of predefined reductions. */
static int is_allowed(int type, int op) {
  const int is_logical = op >= kLand && op <= kLxor, is_bitwise = op >= kBand && op <= kBxor;
  switch (groups[type]) {
    case kCInteger:
      return 1;
    case kMultiLanguage:
      return !is_logical;
    case kCBool:
      return is_logical;
    case kByte:
      return is_bitwise;
    case kComplex:
      return op == kSum || op == kProd;
    default:
      return !is_logical && !is_bitwise;
  }
}

static void add_ints(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

/* The input of rank r of a communicator: small enough that 27 of them multiply exactly in 24 bits, and
 * neither add nor multiply beyond 127 in a byte: native MPIs differ there, and Open MPI 4.1 saturates
 * unsigned bytes. Logical inputs: true and false on each rank, and equal on all ranks for some elements.
 */
static long value_of(int rank, int i, int type, int op) {
  if (op >= kLand && op <= kLxor) return i % 3 == 0 ? i % 2 : (rank + i) % 4 == 0;
  if (op == kProd) return (rank + i) % 5 == 0 ? 2 : 1;
  return (rank * 7 + i * 3) % 101 % (op == kSum && sizes[type] == 1 ? 5 : 101);
}

static long reduced(int size, int i, int type, int op) {
  long result = value_of(0, i, type, op);
  for (int r = 1; r < size; ++r) {
    const long value = value_of(r, i, type, op);
    switch (op) {
      case kProd:
        result *= value;
        break;
      case kMin:
        result = value < result ? value : result;
        break;
      case kMax:
        result = value > result ? value : result;
        break;
      case kBand:
        result &= value;
        break;
      case kBor:
        result |= value;
        break;
      case kBxor:
        result ^= value;
        break;
      case kLand:
        result = result && value;
        break;
      case kLor:
        result = result || value;
        break;
      case kLxor:
        result = !result != !value;
        break;
      default:
        result += value;
        break;
    }
  }
  return result;
}

static void check(MPI_Comm comm, const char* comm_name, int type, int op, int count, int in_place) {
  const unsigned char guard = 0xA5;
  int rank, size, type_bytes;
  char what[200];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Type_size(mpi_type(type), &type_bytes);
  const size_t bytes = (size_t)count * (size_t)type_bytes;
  unsigned char* in = malloc(bytes + 1);
  unsigned char* out = malloc(bytes + 16);
  memset(out, guard, bytes + 16);
  for (int i = 0; i < count; ++i) put(in_place ? out : in, type, i, value_of(rank, i, type, op));
  MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, mpi_type(type), mpi_op(op), comm);
  memset(in, 0xFF, bytes); /* allowed after the call */
  snprintf(what, sizeof what, "%s on %s of %d ranks, %s, %d elements%s", op_names[op], comm_name, size,
           type_names[type], count, in_place ? ", in place" : "");
  for (int i = 0; i < count; ++i)
    if (!equals(out, type, i, reduced(size, i, type, op))) wrong(what, i);
  for (size_t i = 0; i < 16; ++i)
    if (out[bytes + i] != guard) wrong(what, count);
  free(in);
  free(out);

  if (size == 1) {
    expect_delegated("communicator of 1 rank");
  } else if (count == 0) {
    expect_delegated("MPI_Allreduce: no data");
  } else {
    ++taken_calls;
    taken_bytes += (long long)bytes;
  }
}

static void check_all(MPI_Comm comm, const char* name) {
  static const int counts[] = {1, 2, 7, 8, 9, 64, 1009, 40000};
  int next = 0;
  for (int type = 0; type <= kDouble; ++type)
    for (int op = 0; op < kBand; ++op)
      for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i)
        check(comm, name, type, op, counts[i], i % 2);
  for (int type = 0; type < kNumTypes; ++type)
    for (int op = type <= kDouble ? kBand : 0; op < kUser; ++op)
      if (is_allowed(type, op)) {
        check(comm, name, type, op, counts[next % 7], next % 2);
        ++next;
      }
}

/* Every rank gets the same bits, even where every order of summing rounds: NaN with signs and payloads,
 * both zeros, infinities, and numbers that lose digits. MPI only recommends it, so only HiPS is tested. */
static void check_bits(MPI_Comm comm, int type, int op, int count) {
  const size_t bytes = (size_t)count * (type == kFloat ? sizeof(float) : sizeof(double));
  unsigned char* in = malloc(bytes);
  unsigned char* out = malloc(bytes);
  unsigned char* first = malloc(bytes);
  for (int i = 0; i < count; ++i) {
    const int mix = (i * 7 + world_rank * 3) % 11;
    double value = (world_rank * 31 + i % 97) / 7.0 * (mix == 6 ? 1e30 : 1);
    if (mix == 0) value = -0.0;
    if (mix == 1) value = 0.0;
    /* Some elements are NaN on no rank, or every sum would be NaN. */
    if (i % 3 != 0) {
      if (mix == 2) value = nan("1");
      if (mix == 3) value = -nan("2");
      if (mix == 4) value = INFINITY;
      if (mix == 5) value = -INFINITY;
    }
    if (type == kFloat)
      ((float*)in)[i] = (float)value;
    else
      ((double*)in)[i] = value;
  }
  MPI_Allreduce(in, out, count, mpi_type(type), mpi_op(op), comm);
  memset(in, 0xFF, bytes);
  memcpy(first, out, bytes);
  PMPI_Bcast(first, (int)bytes, MPI_BYTE, 0, comm);
  if (memcmp(first, out, bytes) != 0) wrong("bits", 0);
  free(in);
  free(out);
  free(first);
  ++taken_calls;
  taken_bytes += (long long)bytes;
}

static void check_all_bits(MPI_Comm comm) {
  static const int counts[] = {1, 10, 333, 20011};
  for (int op = 0; op < kBand; ++op)
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
      check_bits(comm, kFloat, op, counts[i]);
      check_bits(comm, kDouble, op, counts[i]);
    }
}

/* Functions of the program, and pairs. */
static void expect_taken(int size, long long bytes) {
  if (size == 1) {
    expect_delegated("communicator of 1 rank");
  } else {
    ++taken_calls;
    taken_bytes += bytes;
  }
}

static void check_functions(MPI_Comm comm, const char* name) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  check(comm, name, kInt, kUser, 33, 0);
  check(comm, name, kInt, kUser, 33, 1);

  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Op pair_op;
  MPI_Op_create(add_ints, 1, &pair_op);
  int in[2] = {rank, 1}, out[2] = {0, 0};
  /* add_ints gets a count of one element of the derived type, and adds its first int only. */
  MPI_Allreduce(in, out, 1, pair, pair_op, comm);
  if (out[0] != size * (size - 1) / 2) wrong("derived type", 0);
  expect_taken(size, sizeof in);
  MPI_Op_free(&pair_op);
  MPI_Type_free(&pair);

  struct {
    double value;
    int index;
  } mine = {(double)((rank + 1) % size), rank}, best = {0, 0};
  MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  if (best.index != (size == 1 ? 0 : size - 2)) wrong("maxloc", 0);
  expect_taken(size, sizeof mine);
}

/* Calls that HiPS does not support: the result of native MPI is returned. */
static void check_delegated(MPI_Comm comm, const char* name) {
  check(comm, name, kInt, kSum, 0, 0);

  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Datatype whole;
  MPI_Type_contiguous(300, MPI_INT, &whole);
  MPI_Type_commit(&whole);
  int in[300] = {rank}, out[300] = {0};
  MPI_Allreduce(in, out, 1, whole, user_op, comm);
  if (out[0] != size * (size - 1) / 2) wrong("long type", 0);
  expect_delegated(size == 1 ? "communicator of 1 rank" : "MPI_Allreduce: type a derived type");
  MPI_Type_free(&whole);
}

/* Pairs that the standard does not allow are delegated; native MPI gives an error or a result. */
static void check_not_allowed(void) {
  float floats[3] = {1, 2, 3}, float_results[3];
  unsigned char bytes[3] = {1, 2, 3}, byte_results[3];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Allreduce(floats, float_results, 3, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD);
  expect_delegated("MPI_Allreduce: MPI_BAND of MPI_FLOAT");
  MPI_Allreduce(bytes, byte_results, 3, MPI_BYTE, MPI_SUM, MPI_COMM_WORLD);
  expect_delegated("MPI_Allreduce: MPI_SUM of MPI_BYTE");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void check_intercommunicator(void) {
  const int color = world_rank % 2;
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, color, world_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 1, &inter);
  int mine = 1 + color, sum = 0, remote_size;
  MPI_Comm_remote_size(inter, &remote_size);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
  if (sum != remote_size * (2 - color)) wrong("inter-communicator", 0);
  expect_delegated("inter-communicator");
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Op_create(add_ints, 1, &user_op);

  check_all(MPI_COMM_WORLD, "world");
  if (argc > 1 && strcmp(argv[1], "bits") == 0) check_all_bits(MPI_COMM_WORLD);
  check_functions(MPI_COMM_WORLD, "world");
  check_delegated(MPI_COMM_WORLD, "world");
  check_not_allowed();
  check_functions(MPI_COMM_SELF, "self");
  check_delegated(MPI_COMM_SELF, "self");
  check(MPI_COMM_SELF, "self", kDouble, kSum, 10, 0);

  MPI_Comm duplicate;
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  MPI_Comm_set_name(duplicate, "duplicate");
  /* The first call on it is delegated. */
  check_delegated(duplicate, "duplicate");
  check_functions(duplicate, "duplicate");
  check(duplicate, "duplicate", kDouble, kSum, 1000, 0);
  check(MPI_COMM_WORLD, "world", kDouble, kSum, 1000, 0);

  /* Halves, ranks in reverse order. */
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
  check(half, "half", kFloat, kSum, 777, 0);
  check(half, "half", kInt64, kMax, 12345, 1);
  check(duplicate, "duplicate", kInt, kMin, 5, 1);
  MPI_Comm_free(&half);

  /* One rank is not in it. */
  MPI_Comm others;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : 1, 0, &others);
  if (others != MPI_COMM_NULL) {
    check(others, "others", kLong, kProd, 100, 0);
    MPI_Comm_free(&others);
  }

  /* Handles are reused: each new communicator is another one, of alternating size. */
  for (int round = 0; round < 12; ++round) {
    MPI_Comm passing;
    MPI_Comm_split(MPI_COMM_WORLD, round % 2 ? 0 : world_rank % 2, world_rank, &passing);
    check(passing, "passing", kInt, kSum, 10, round % 3 == 0);
    MPI_Comm_free(&passing);
  }
  MPI_Comm_free(&duplicate);
  check_intercommunicator();
  check(MPI_COMM_WORLD, "world", kDouble, kSum, 1000, 1);

  MPI_Op_free(&user_op);
  long all_wrong = 0;
  PMPI_Reduce(&num_wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank == 0) {
    printf("expect taken %ld %lld\n", taken_calls, taken_bytes);
    for (int i = 0; i < num_reasons; ++i) printf("expect delegated %ld %s\n", reason_calls[i], reasons[i]);
    printf("wrong %ld\n", all_wrong);
  }
  MPI_Finalize();
  return num_wrong ? 1 : 0;
}
