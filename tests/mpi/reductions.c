/*
 * Random reductions of all types and ops of MPI and of functions of the program: MPI_Allreduce, MPI_Reduce,
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block, blocking, non-blocking and persistent, in place or not, on several
 * communicators. Every rank computes the expected results itself, in the order of ranks. Integers, pairs and what
 * functions make of integers have to be equal, sums and products of floating point within the bound of their rounding.
 *
 * reductions SEED CALLS
 *
 * Rank 0 prints a hash of its exact results, which is the same under any MPI, and how many calls a library should have
 * taken ("expect taken CALLS") that delegates what has no data, one rank, or elements of more than 1024 bytes.
 */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

enum { kMostExtent = 1040, kMaxCount = 3000, kMaxRanks = 64, kMostOutstanding = 4, kGuard = 0xA5 };

static int world_rank;
static long num_wrong, num_taken;
static uint64_t hash = 14695981039346656037ull;

static uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static uint64_t state;
static int below(int end) {
  return (int)(mixed(state += 0x9e3779b97f4a7c15ull) % (uint64_t)end);
}

/* Random bits of element i of a rank. */
static uint64_t bits_of(int rank, int i, int salt) {
  return mixed(((uint64_t)rank << 48 ^ (uint64_t)salt << 24 ^ (uint64_t)i) + 0x9e3779b97f4a7c15ull);
}

/* An operation on one type: `combine` is left = left op right. */
struct Kind {
  const char* name;
  MPI_Datatype type;
  MPI_Op op;
  size_t extent;
  void (*fill)(void* element, uint64_t bits);
  void (*combine)(void* left, const void* right);
  /* Null: the bytes are equal. `size` values were reduced. */
  int (*near)(const void* result, const void* expected, int size);
  /* Of the program: makes the type and the op of one call. */
  MPI_Datatype (*make_type)(void);
  MPI_User_function* function;
  int commutes;
  /* Bytes of an element that are data; null: all. */
  int (*is_data)(size_t byte);
  int has_guards; /* the others must not change */
};

/* ---- Numbers ---- */

/* Small enough that the sum and the product of nine of them fit into a byte. */
#define INTEGER(T, name)                                     \
  static void fill_##name(void* e, uint64_t bits) {          \
    *(T*)e = (T)(bits % 5 == 0 ? 2 : bits % 7 == 0 ? 3 : 1); \
  }                                                          \
  static void sum_##name(void* l, const void* r) {           \
    *(T*)l = (T)(*(T*)l + *(const T*)r);                     \
  }                                                          \
  static void max_##name(void* l, const void* r) {           \
    *(T*)l = *(const T*)r > *(T*)l ? *(const T*)r : *(T*)l;  \
  }                                                          \
  static void min_##name(void* l, const void* r) {           \
    *(T*)l = *(const T*)r < *(T*)l ? *(const T*)r : *(T*)l;  \
  }                                                          \
  static void bits_##name(void* e, uint64_t bits) {          \
    *(T*)e = (T)bits;                                        \
  }                                                          \
  static void band_##name(void* l, const void* r) {          \
    *(T*)l = (T)(*(T*)l & *(const T*)r);                     \
  }                                                          \
  static void bor_##name(void* l, const void* r) {           \
    *(T*)l = (T)(*(T*)l | *(const T*)r);                     \
  }                                                          \
  static void bxor_##name(void* l, const void* r) {          \
    *(T*)l = (T)(*(T*)l ^ *(const T*)r);                     \
  }
#define LOGICAL(T, name)                             \
  static void truth_##name(void* e, uint64_t bits) { \
    *(T*)e = (T)(bits % 4 == 0);                     \
  }                                                  \
  static void land_##name(void* l, const void* r) {  \
    *(T*)l = *(T*)l && *(const T*)r;                 \
  }                                                  \
  static void lor_##name(void* l, const void* r) {   \
    *(T*)l = *(T*)l || *(const T*)r;                 \
  }                                                  \
  static void lxor_##name(void* l, const void* r) {  \
    *(T*)l = !*(T*)l != !*(const T*)r;               \
  }
INTEGER(int32_t, int32)
INTEGER(int64_t, int64)
INTEGER(uint8_t, byte)
INTEGER(int8_t, int8)
INTEGER(int16_t, int16)
LOGICAL(_Bool, bool)
LOGICAL(MPI_Fint, logical)
LOGICAL(int32_t, int32)

/* Of modulus 0.5 to 1.5, so that errors of sums and products are bounded by those of numbers of that size. */
static double real_of(uint64_t bits) {
  const double size = 0.5 + (double)(bits >> 12) / (double)(1ull << 52);
  return bits & 1 ? size : -size;
}
static int is_near(long double error, int size, long double epsilon) {
  return error <= 8 * size * epsilon * powl(1.5L, size);
}
#define FLOATING(T, name, EPSILON, MODULUS)                                                       \
  static void sum_##name(void* l, const void* r) {                                                \
    *(T*)l += *(const T*)r;                                                                       \
  }                                                                                               \
  static void prod_##name(void* l, const void* r) {                                               \
    *(T*)l *= *(const T*)r;                                                                       \
  }                                                                                               \
  static int near_##name(const void* result, const void* expected, int size) {                    \
    return is_near((long double)MODULUS(*(const T*)result - *(const T*)expected), size, EPSILON); \
  }
#define REAL(T, name, EPSILON)                              \
  static void fill_##name(void* e, uint64_t bits) {         \
    *(T*)e = (T)real_of(bits);                              \
  }                                                         \
  static void max_##name(void* l, const void* r) {          \
    *(T*)l = *(const T*)r > *(T*)l ? *(const T*)r : *(T*)l; \
  }                                                         \
  FLOATING(T, name, EPSILON, fabsl)
#define COMPLEX(T, name, EPSILON)                                                                \
  static void fill_##name(void* e, uint64_t bits) {                                              \
    const double angle = (double)(bits % 629) / 100;                                             \
    *(T*)e = (T)(fabs(real_of(bits)) * (cos(angle) + sin(angle) * (double _Complex)_Complex_I)); \
  }                                                                                              \
  FLOATING(T, name, EPSILON, cabsl)
REAL(float, float, FLT_EPSILON)
REAL(double, double, DBL_EPSILON)
REAL(long double, long_double, LDBL_EPSILON)
COMPLEX(float _Complex, float_complex, FLT_EPSILON)
COMPLEX(double _Complex, double_complex, DBL_EPSILON)
COMPLEX(long double _Complex, long_double_complex, LDBL_EPSILON)
/* Only ten bytes of an x86 one are data. */
static int is_long_double(size_t byte) {
  return byte < (LDBL_MANT_DIG == 64 ? 10 : sizeof(long double));
}

/* ---- Pairs. Few values, so that there are ties. ---- */

#define PAIR(V, I, name)                                                                              \
  struct name {                                                                                       \
    V value;                                                                                          \
    I index;                                                                                          \
  };                                                                                                  \
  static void fill_##name(void* e, uint64_t bits) {                                                   \
    ((struct name*)e)->value = (V)((int)(bits % 3) - 1);                                              \
    ((struct name*)e)->index = (I)(bits >> 8 & 0xff);                                                 \
  }                                                                                                   \
  static void max_##name(void* l, const void* r) {                                                    \
    struct name* const left = l;                                                                      \
    const struct name* const right = r;                                                               \
    if (right->value > left->value || (right->value == left->value && right->index < left->index)) {  \
      left->value = right->value;                                                                     \
      left->index = right->index;                                                                     \
    }                                                                                                 \
  }                                                                                                   \
  static void min_##name(void* l, const void* r) {                                                    \
    struct name* const left = l;                                                                      \
    const struct name* const right = r;                                                               \
    if (right->value < left->value || (right->value == left->value && right->index < left->index)) {  \
      left->value = right->value;                                                                     \
      left->index = right->index;                                                                     \
    }                                                                                                 \
  }                                                                                                   \
  static int is_in_##name(size_t byte) {                                                              \
    return byte < (sizeof(V) > 8 ? 10 : sizeof(V)) ||                                                 \
           (byte >= offsetof(struct name, index) && byte < offsetof(struct name, index) + sizeof(I)); \
  }
PAIR(float, int, float_int)
PAIR(double, int, double_int)
PAIR(long, int, long_int)
PAIR(int, int, int_int)
PAIR(short, int, short_int)
PAIR(long double, int, long_double_int)
PAIR(float, float, real_real)
PAIR(double, double, double_double)

/* ---- Functions of the program ---- */

/* The map x -> factor * x + offset; `left` is applied first, and they do not commute. */
static void compose(uint32_t* factor, uint32_t* offset, uint32_t factor_right, uint32_t offset_right) {
  *offset = factor_right * *offset + offset_right;
  *factor *= factor_right;
}
#define MAPS(name, words, first, second, is_of_data)                                                \
  static void fill_##name(void* e, uint64_t bits) {                                                 \
    for (int w = 0; w < (words); ++w)                                                               \
      if (is_of_data((size_t)w * 4)) ((uint32_t*)e)[w] = (uint32_t)(mixed(bits + (uint64_t)w)) | 1; \
  }                                                                                                 \
  static void combine_##name(void* l, const void* r) {                                              \
    uint32_t* const left = l;                                                                       \
    const uint32_t* const right = r;                                                                \
    for (int w = 0; w + (second) < (words); w += (second) + 1)                                      \
      compose(left + w + (first), left + w + (second), right[w + (first)], right[w + (second)]);    \
  }                                                                                                 \
  static void function_##name(void* in, void* inout, int* count, MPI_Datatype* type) {              \
    uint32_t result[kMostExtent / 4];                                                               \
    MPI_Aint lower, extent;                                                                         \
    MPI_Type_get_extent(*type, &lower, &extent);                                                    \
    if (extent != 4 * (words) || *count < 1) ++num_wrong;                                           \
    for (int i = 0; i < *count; ++i) {                                                              \
      uint32_t* const to = (uint32_t*)inout + i * (words);                                          \
      memcpy(result, (uint32_t*)in + i * (words), 4 * (words));                                     \
      combine_##name(result, to);                                                                   \
      for (int w = 0; w < (words); ++w)                                                             \
        if (is_of_data((size_t)w * 4)) to[w] = result[w];                                           \
    }                                                                                               \
  }
static int is_any(size_t byte) {
  (void)byte;
  return 1;
}
static int is_in_struct(size_t byte) {
  return byte < 4 || (byte >= 8 && byte < 12);
}
static int is_in_vector(size_t byte) {
  return byte < 4 || byte >= 12;
}
MAPS(map, 2, 0, 1, is_any)
MAPS(padded, 4, 0, 2, is_in_struct)
MAPS(apart, 4, 0, 3, is_in_vector)
MAPS(long_map, 256, 0, 1, is_any)
MAPS(too_long, 258, 0, 1, is_any)

static MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}
static MPI_Datatype make_map(void) {
  MPI_Datatype type;
  MPI_Type_contiguous(2, MPI_UNSIGNED, &type);
  return committed(type);
}
static MPI_Datatype make_padded(void) {
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype types[] = {MPI_UNSIGNED, MPI_UNSIGNED};
  MPI_Datatype of_both, type;
  MPI_Type_create_struct(2, lengths, places, types, &of_both);
  MPI_Type_create_resized(of_both, 0, 16, &type);
  MPI_Type_free(&of_both);
  return committed(type);
}
static MPI_Datatype make_apart(void) {
  MPI_Datatype type;
  MPI_Type_vector(2, 1, 3, MPI_UNSIGNED, &type);
  return committed(type);
}
static MPI_Datatype make_long_map(void) {
  MPI_Datatype type;
  MPI_Type_contiguous(256, MPI_UNSIGNED, &type);
  return committed(type);
}
static MPI_Datatype make_too_long(void) {
  MPI_Datatype type;
  MPI_Type_contiguous(258, MPI_UNSIGNED, &type);
  return committed(type);
}
static MPI_Datatype make_before(void) {
  MPI_Datatype type;
  MPI_Type_create_resized(MPI_INT, -4, 8, &type);
  return committed(type);
}
static int is_first_word(size_t byte) {
  return byte < 4;
}

static void add_ints(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lower, extent;
  MPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *count; ++i) *(int*)((char*)inout + i * extent) += *(int*)((char*)in + i * extent);
}
static void fill_before(void* e, uint64_t bits) {
  fill_int32(e, bits);
}
static void most_char(void* in, void* inout, int* count, MPI_Datatype* type) {
  if (*type != MPI_CHAR) ++num_wrong;
  for (int i = 0; i < *count; ++i)
    if (((int8_t*)in)[i] > ((int8_t*)inout)[i]) ((int8_t*)inout)[i] = ((int8_t*)in)[i];
}
/* Keeps the left one: as little commutative as can be. */
static void first_pair(void* in, void* inout, int* count, MPI_Datatype* type) {
  if (*type != MPI_DOUBLE_INT) ++num_wrong;
  for (int i = 0; i < *count; ++i) {
    ((struct double_int*)inout)[i].value = ((struct double_int*)in)[i].value;
    ((struct double_int*)inout)[i].index = ((struct double_int*)in)[i].index;
  }
}
static void keep_left(void* l, const void* r) {
  (void)l, (void)r;
}
static void sum_complex_parts(void* in, void* inout, int* count, MPI_Datatype* type) {
  if (*type != MPI_C_FLOAT_COMPLEX) ++num_wrong;
  for (int i = 0; i < *count; ++i) ((float _Complex*)inout)[i] += ((float _Complex*)in)[i];
}

#define OF_MPI(TYPE, OP, T, fill, combine, ...) \
  { #OP " of " #TYPE, TYPE, OP, sizeof(T), fill, combine, __VA_ARGS__ }
#define OF_INTEGER(TYPE, T, name)                                \
  OF_MPI(TYPE, MPI_SUM, T, fill_##name, sum_##name, NULL),       \
      OF_MPI(TYPE, MPI_MAX, T, fill_##name, max_##name, NULL),   \
      OF_MPI(TYPE, MPI_MIN, T, fill_##name, min_##name, NULL),   \
      OF_MPI(TYPE, MPI_BAND, T, bits_##name, band_##name, NULL), \
      OF_MPI(TYPE, MPI_BOR, T, bits_##name, bor_##name, NULL),   \
      OF_MPI(TYPE, MPI_BXOR, T, bits_##name, bxor_##name, NULL)
#define OF_LOGICAL(TYPE, T, name)                               \
  OF_MPI(TYPE, MPI_LAND, T, truth_##name, land_##name, NULL),   \
      OF_MPI(TYPE, MPI_LOR, T, truth_##name, lor_##name, NULL), \
      OF_MPI(TYPE, MPI_LXOR, T, truth_##name, lxor_##name, NULL)
#define OF_COMPLEX(TYPE, T, name)                                 \
  OF_MPI(TYPE, MPI_SUM, T, fill_##name, sum_##name, near_##name), \
      OF_MPI(TYPE, MPI_PROD, T, fill_##name, prod_##name, near_##name)
#define OF_REAL(TYPE, T, name, ...)                                                     \
  OF_COMPLEX(TYPE, T, name), {                                                          \
    "MPI_MAX of " #TYPE, TYPE, MPI_MAX, sizeof(T), fill_##name, max_##name, __VA_ARGS__ \
  }
#define OF_PAIR(TYPE, name)                                                                 \
  {"MPI_MAXLOC of " #TYPE, TYPE, MPI_MAXLOC, sizeof(struct name), fill_##name, max_##name,  \
   .is_data = is_in_##name},                                                                \
  {                                                                                         \
    "MPI_MINLOC of " #TYPE, TYPE, MPI_MINLOC, sizeof(struct name), fill_##name, min_##name, \
        .is_data = is_in_##name                                                             \
  }
#define OF_PROGRAM(name, words, data, guards)                                                       \
  {                                                                                                 \
    "a function of " #name, .extent = 4 * (words), .fill = fill_##name, .combine = combine_##name,  \
                            .make_type = make_##name, .function = function_##name, .is_data = data, \
                            .has_guards = guards                                                    \
  }

static struct Kind kinds[160];
static int num_kinds;

static void add_kind(struct Kind kind) {
  /* A type of Fortran that this MPI's compiler does not have, or of another size. */
  if (!kind.make_type) {
    MPI_Aint lower, extent;
    if (kind.type == MPI_DATATYPE_NULL) return;
    MPI_Type_get_extent(kind.type, &lower, &extent);
    if ((size_t)extent != kind.extent) return;
  }
  if (num_kinds == (int)(sizeof kinds / sizeof kinds[0])) exit(2);
  kinds[num_kinds++] = kind;
}

static void make_kinds(void) {
  const struct Kind all[] = {
      OF_INTEGER(MPI_INT, int32_t, int32),
      OF_INTEGER(MPI_UNSIGNED_CHAR, uint8_t, byte),
      OF_INTEGER(MPI_INTEGER, int32_t, int32),
      OF_INTEGER(MPI_INTEGER1, int8_t, int8),
      OF_INTEGER(MPI_INTEGER2, int16_t, int16),
      OF_INTEGER(MPI_INTEGER4, int32_t, int32),
      OF_INTEGER(MPI_INTEGER8, int64_t, int64),
      OF_INTEGER(MPI_AINT, int64_t, int64),
      OF_INTEGER(MPI_OFFSET, int64_t, int64),
      OF_INTEGER(MPI_COUNT, int64_t, int64),
      OF_MPI(MPI_BYTE, MPI_BAND, uint8_t, bits_byte, band_byte, NULL),
      OF_MPI(MPI_BYTE, MPI_BOR, uint8_t, bits_byte, bor_byte, NULL),
      OF_MPI(MPI_BYTE, MPI_BXOR, uint8_t, bits_byte, bxor_byte, NULL),
      OF_LOGICAL(MPI_INT, int32_t, int32),
      OF_LOGICAL(MPI_C_BOOL, _Bool, bool),
      OF_LOGICAL(MPI_CXX_BOOL, _Bool, bool),
      OF_LOGICAL(MPI_LOGICAL, MPI_Fint, logical),
      OF_REAL(MPI_FLOAT, float, float, NULL),
      OF_REAL(MPI_DOUBLE, double, double, NULL),
      OF_REAL(MPI_REAL, float, float, NULL),
      OF_REAL(MPI_REAL4, float, float, NULL),
      OF_REAL(MPI_REAL8, double, double, NULL),
      OF_REAL(MPI_DOUBLE_PRECISION, double, double, NULL),
      OF_REAL(MPI_LONG_DOUBLE, long double, long_double, NULL, .is_data = is_long_double),
      OF_COMPLEX(MPI_C_FLOAT_COMPLEX, float _Complex, float_complex),
      OF_COMPLEX(MPI_C_DOUBLE_COMPLEX, double _Complex, double_complex),
      OF_COMPLEX(MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex, long_double_complex),
      OF_COMPLEX(MPI_CXX_FLOAT_COMPLEX, float _Complex, float_complex),
      OF_COMPLEX(MPI_CXX_DOUBLE_COMPLEX, double _Complex, double_complex),
      OF_COMPLEX(MPI_CXX_LONG_DOUBLE_COMPLEX, long double _Complex, long_double_complex),
      OF_COMPLEX(MPI_COMPLEX, float _Complex, float_complex),
      OF_COMPLEX(MPI_DOUBLE_COMPLEX, double _Complex, double_complex),
      OF_COMPLEX(MPI_COMPLEX8, float _Complex, float_complex),
      OF_COMPLEX(MPI_COMPLEX16, double _Complex, double_complex),
      OF_PAIR(MPI_FLOAT_INT, float_int),
      OF_PAIR(MPI_DOUBLE_INT, double_int),
      OF_PAIR(MPI_LONG_INT, long_int),
      OF_PAIR(MPI_2INT, int_int),
      OF_PAIR(MPI_SHORT_INT, short_int),
      OF_PAIR(MPI_LONG_DOUBLE_INT, long_double_int),
      OF_PAIR(MPI_2INTEGER, int_int),
      OF_PAIR(MPI_2REAL, real_real),
      OF_PAIR(MPI_2DOUBLE_PRECISION, double_double),
  };
  const struct Kind of_program[] = {
      OF_PROGRAM(map, 2, NULL, 0),
      OF_PROGRAM(padded, 4, is_in_struct, 1),
      OF_PROGRAM(apart, 4, is_in_vector, 1),
      OF_PROGRAM(long_map, 256, NULL, 0),
      OF_PROGRAM(too_long, 258, NULL, 0),
      {"a function of elements with a lower bound", .extent = 8, .fill = fill_before, .combine = sum_int32,
       .make_type = make_before, .function = add_ints, .commutes = 1, .is_data = is_first_word,
       .has_guards = 1},
      {"a function of MPI_INT", .type = MPI_INT, .extent = 4, .fill = fill_int32, .combine = sum_int32,
       .function = add_ints, .commutes = 1},
      {"a function of MPI_CHAR", .type = MPI_CHAR, .extent = 1, .fill = bits_int8, .combine = max_int8,
       .function = most_char, .commutes = 1},
      {"a function of MPI_DOUBLE_INT", .type = MPI_DOUBLE_INT, .extent = sizeof(struct double_int),
       .fill = fill_double_int, .combine = keep_left, .function = first_pair, .is_data = is_in_double_int},
      {"a function of MPI_C_FLOAT_COMPLEX", .type = MPI_C_FLOAT_COMPLEX, .extent = sizeof(float _Complex),
       .fill = fill_float_complex, .combine = sum_float_complex, .near = near_float_complex,
       .function = sum_complex_parts, .commutes = 1},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) add_kind(all[i]);
  for (size_t i = 0; i < sizeof of_program / sizeof of_program[0]; ++i) add_kind(of_program[i]);
}

/* ---- Calls ---- */

enum Collective { kAllreduce, kReduce, kReduceScatter, kReduceScatterBlock, kNumCollectives };
enum Form { kBlocking, kNonblocking, kPersistent, kNumForms };

struct Call {
  const struct Kind* kind;
  enum Collective collective;
  enum Form form;
  int rank, size, root, in_place, salt, total, first, num, counts[kMaxRanks];
  MPI_Comm comm;
  MPI_Datatype type;
  MPI_Op op;
  unsigned char *in, *before, *out;
  MPI_Request request;
};

static int frees_early;

static void wrong(const struct Call* call, const char* what, int i) {
  static const char* const collectives[] = {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block"};
  static const char* const forms[] = {"blocking", "non-blocking", "persistent"};
  if (++num_wrong > 5) return;
  fprintf(stderr, "rank %d of %d: %s %s by %s, %d elements%s: element %d: %s\n", call->rank, call->size,
          forms[call->form], collectives[call->collective], call->kind->name, call->total,
          call->in_place ? ", in place" : "", i, what);
}

static void fill(const struct Call* call, unsigned char* elements) {
  unsigned char whole[kMostExtent];
  for (int i = 0; i < call->total; ++i) {
    unsigned char* const element = elements + (size_t)i * call->kind->extent;
    memcpy(whole, element, call->kind->extent);
    call->kind->fill(whole, bits_of(call->rank, i, call->salt));
    memcpy(element, whole, call->kind->extent);
  }
}

static void free_handles(struct Call* call) {
  if (call->kind->make_type) MPI_Type_free(&call->type);
  if (call->kind->function) MPI_Op_free(&call->op);
  if (call->kind->make_type && call->type != MPI_DATATYPE_NULL) wrong(call, "a freed type has a handle", 0);
  if (call->kind->function && call->op != MPI_OP_NULL) wrong(call, "a freed op has a handle", 0);
}

static int is_taken(const struct Call* call) {
  return call->size > 1 && call->total > 0 && call->kind->extent <= 1024 &&
         (call->form != kPersistent || !call->kind->has_guards);
}

static void start(struct Call* call) {
  const void* const in = call->in_place ? MPI_IN_PLACE : call->in;
  void* const out = call->out;
  MPI_Request* const request = &call->request;
  const int each = call->counts[0];
  switch (call->collective) {
    case kAllreduce:
      if (call->form == kBlocking) MPI_Allreduce(in, out, call->total, call->type, call->op, call->comm);
      if (call->form == kNonblocking)
        MPI_Iallreduce(in, out, call->total, call->type, call->op, call->comm, request);
      if (call->form == kPersistent)
        MPI_Allreduce_init(in, out, call->total, call->type, call->op, call->comm, MPI_INFO_NULL, request);
      break;
    case kReduce:
      if (call->form == kBlocking)
        MPI_Reduce(in, out, call->total, call->type, call->op, call->root, call->comm);
      else
        MPI_Ireduce(in, out, call->total, call->type, call->op, call->root, call->comm, request);
      break;
    case kReduceScatter:
      if (call->form == kBlocking)
        MPI_Reduce_scatter(in, out, call->counts, call->type, call->op, call->comm);
      else
        MPI_Ireduce_scatter(in, out, call->counts, call->type, call->op, call->comm, request);
      break;
    default:
      if (call->form == kBlocking)
        MPI_Reduce_scatter_block(in, out, each, call->type, call->op, call->comm);
      else
        MPI_Ireduce_scatter_block(in, out, each, call->type, call->op, call->comm, request);
      break;
  }
}

/* Of the same arguments on all ranks. */
static void make(struct Call* call, MPI_Comm comm) {
  static const int some[] = {0, 1, 2, 3, 7, 64, 200, 1000, kMaxCount};
  const struct Kind* const kind = &kinds[below(num_kinds)];
  const size_t extent = kind->extent;
  const int most = some[below(9)], root = below(kMaxRanks), cut = below(1000);
  memset(call, 0, sizeof *call);
  call->kind = kind;
  call->collective = (enum Collective)below(kNumCollectives);
  call->form = (enum Form)below(call->collective == kAllreduce ? kNumForms : kPersistent);
#ifdef MPICH_VERSION
  /* MPICH 4.0 itself corrupts memory in a reduce-scatter by a function that does not commute. */
  if (call->collective >= kReduceScatter && kind->function && !kind->commutes) call->collective = kAllreduce;
#endif
  call->in_place = below(3) == 0;
  call->salt = below(1 << 20);
  call->comm = comm;
  call->request = MPI_REQUEST_NULL;
  MPI_Comm_rank(comm, &call->rank);
  MPI_Comm_size(comm, &call->size);
  call->root = root % call->size;
  call->total = extent > 64 ? most / 20 : most;
#ifdef MPICH_VERSION
  /* MPICH 4.0 dereferences MPI_IN_PLACE where the root is not rank 0. */
  if (call->collective == kReduce && call->root != 0) call->in_place = 0;
#endif
  if (call->collective == kReduce && call->rank != call->root) call->in_place = 0;
  call->num = call->collective == kReduce && call->rank != call->root ? 0 : call->total;
  if (call->collective == kReduceScatter || call->collective == kReduceScatterBlock) {
    const int each = call->total / call->size;
    call->total = 0;
    for (int r = 0; r < call->size; ++r) {
      call->counts[r] = call->collective == kReduceScatterBlock ? each : (each * r + cut) % (each + 1);
      if (r == call->rank) call->first = call->total;
      call->total += call->counts[r];
    }
    call->num = call->counts[call->rank];
  }
  call->type = kind->make_type ? kind->make_type() : kind->type;
  call->op = kind->op;
  if (kind->function) MPI_Op_create(kind->function, kind->commutes, &call->op);

  const size_t in_bytes = (size_t)call->total * extent + 16;
  const size_t out_bytes = (size_t)(call->in_place ? call->total : call->num) * extent + 16;
  call->in = malloc(in_bytes);
  call->before = malloc(in_bytes);
  call->out = malloc(out_bytes);
  memset(call->in, kGuard, in_bytes);
  memset(call->out, kGuard, out_bytes);
  fill(call, call->in_place ? call->out : call->in);
  memcpy(call->before, call->in, in_bytes);
  if (is_taken(call)) num_taken += call->form == kPersistent ? 2 : 1;
  start(call);
  if (call->form == kPersistent) MPI_Start(&call->request);
  if (call->form == kBlocking || (frees_early && is_taken(call))) free_handles(call);
}

static void check_element(const struct Call* call, int i) {
  const struct Kind* const kind = call->kind;
  const unsigned char* const is = call->out + (size_t)i * kind->extent;
  /* Aligned for every type. */
  union {
    long double number;
    unsigned char bytes[kMostExtent];
  } expected, operand, result;
  memset(&expected, kGuard, sizeof expected);
  memcpy(&result, is, kind->extent);
  kind->fill(&expected, bits_of(0, call->first + i, call->salt));
  for (int r = 1; r < call->size; ++r) {
    memset(&operand, 0, sizeof operand);
    kind->fill(&operand, bits_of(r, call->first + i, call->salt));
    kind->combine(&expected, &operand);
  }
  if (kind->near) {
    if (!kind->near(&result, &expected, call->size)) wrong(call, "beyond the bound of its rounding", i);
    return;
  }
  for (size_t byte = 0; byte < kind->extent; ++byte) {
    if (kind->is_data && !kind->is_data(byte)) {
      if (kind->has_guards && is[byte] != kGuard) {
        wrong(call, "a gap has changed", i);
        return;
      }
      continue;
    }
    if (is[byte] != expected.bytes[byte]) {
      wrong(call, "wrong", i);
      return;
    }
    hash = (hash ^ is[byte]) * 1099511628211ull;
  }
}

static void check(const struct Call* call) {
  const size_t extent = call->kind->extent;
  const unsigned char* const end = call->out + (size_t)(call->in_place ? call->total : call->num) * extent;
  for (int i = 0; i < call->num; ++i) check_element(call, i);
  for (int i = 0; i < 16; ++i)
    if (end[i] != kGuard) wrong(call, "written beyond the end", call->num);
  if (memcmp(call->in, call->before, (size_t)call->total * extent + 16) != 0)
    wrong(call, "the input has changed", 0);
}

static void complete(struct Call* call) {
  MPI_Wait(&call->request, MPI_STATUS_IGNORE);
  check(call);
  if (call->form == kPersistent) {
    /* Once more, with other elements. */
    ++call->salt;
    memset(call->out, kGuard, (size_t)call->total * call->kind->extent);
    fill(call, call->in_place ? call->out : call->in);
    memcpy(call->before, call->in, (size_t)call->total * call->kind->extent);
    MPI_Start(&call->request);
    MPI_Wait(&call->request, MPI_STATUS_IGNORE);
    check(call);
    MPI_Request_free(&call->request);
  }
  if (call->form != kBlocking && !(frees_early && is_taken(call))) free_handles(call);
  free(call->in);
  free(call->before);
  free(call->out);
}

/* NaN compares with nothing, so the order of operands decides. But the result is a pair of some rank, the same on all. */
static void check_nan(void) {
  struct double_int in[100], out[100], first[100];
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 100; ++i) {
    in[i].value = (world_rank + i) % 2 ? NAN : (world_rank + i) % 7;
    in[i].index = world_rank;
  }
  MPI_Allreduce(in, out, 100, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  num_taken += size > 1;
  memcpy(first, out, sizeof out);
  PMPI_Bcast(first, 100, MPI_DOUBLE_INT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < 100; ++i) {
    const int rank = out[i].index;
    const int is_nan = isnan(out[i].value) != 0;
    if (rank < 0 || rank >= size || is_nan != (rank + i) % 2 || (!is_nan && out[i].value != (rank + i) % 7) ||
        rank != first[i].index) {
      ++num_wrong;
      fprintf(stderr, "rank %d: MPI_MAXLOC with NaN: element %d is wrong\n", world_rank, i);
    }
  }
}

int main(int argc, char** argv) {
  static struct Call calls[kMostOutstanding];
  MPI_Comm comms[3];
  int one = 1;
  if (argc < 3) return 2;
  state = strtoull(argv[1], NULL, 10);
  frees_early = argc > 3 && strcmp(argv[3], "freed") == 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  comms[0] = MPI_COMM_WORLD;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &comms[2]);
  make_kinds();
  for (int i = 0; i < 3; ++i) {
    int size;
    MPI_Comm_size(comms[i], &size);
    MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_MAX, comms[i]);
    num_taken += size > 1;
  }
  check_nan();
  for (int left = atoi(argv[2]); left > 0;) {
    int num = 1 + below(kMostOutstanding);
    if (num > left) num = left;
    for (int i = 0; i < num; ++i) make(&calls[i], comms[below(3)]);
    for (int i = num - 1; i >= 0; --i) complete(&calls[i]);
    left -= num;
  }
  long all_wrong = 0;
  PMPI_Reduce(&num_wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank == 0) {
    printf("kinds %d\nhash %llx\nexpect taken %ld 0\nwrong %ld\n", num_kinds, (unsigned long long)hash,
           num_taken, all_wrong);
  }
  MPI_Comm_free(&comms[1]);
  MPI_Comm_free(&comms[2]);
  MPI_Finalize();
  return num_wrong != 0;
}
