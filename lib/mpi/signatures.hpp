#pragma once

#include <mpi.h>

// What makes code of the lines of signatures.def: the types of arguments by their names, in each binding, and
// the macros that write a list of them.

namespace hips::mpi {

/// Arguments of the functions of C.
struct TypesOfC {
  using in = const void*;  ///< buffers
  using out = void*;       ///< also MPI_Bcast's only one
  using in_count = int;
  using count = int;
  using counts = const int*;  ///< by rank, as displs
  using displs = const int*;
  using in_type = MPI_Datatype;
  using type = MPI_Datatype;
  using op = MPI_Op;
  using root = int;
  using comm = MPI_Comm;

  using request = MPI_Request*;
  using handle = MPI_Request;  ///< a request that the function does not change
  using length = int;          ///< of the array of requests
  using requests = MPI_Request*;
  using index = int*;
  using flag = int*;
  using num_done = int*;
  using indices = int*;
  using status = MPI_Status*;
  using statuses = MPI_Status*;

  using size = MPI_Aint;
  using hint = MPI_Info;  ///< which HiPS does not read
  using pointer = void*;  ///< where an address goes
  using base = void*;
  using unit = int;  ///< of displacements
  using window = MPI_Win*;

  using freed_op = MPI_Op*;
  using freed_type = MPI_Datatype*;
};

/// Those of MPI 4 with large counts.
struct TypesOfLargeC : TypesOfC {
  using in_count = MPI_Count;
  using count = MPI_Count;
  using counts = const MPI_Count*;
  using displs = const MPI_Aint*;
};

/// Those of Fortran: every argument is an address.
struct TypesOfFortran {
  using in = const char*;
  using out = char*;
  using in_count = const MPI_Fint*;
  using count = const MPI_Fint*;
  using counts = const MPI_Fint*;
  using displs = const MPI_Fint*;
  using in_type = const MPI_Fint*;
  using type = const MPI_Fint*;
  using op = const MPI_Fint*;
  using root = const MPI_Fint*;
  using comm = const MPI_Fint*;

  using request = MPI_Fint*;
  using handle = MPI_Fint*;
  using length = const MPI_Fint*;
  using requests = MPI_Fint*;
  using index = MPI_Fint*;
  using flag = MPI_Fint*;
  using num_done = MPI_Fint*;
  using indices = MPI_Fint*;
  using status = MPI_Fint*;
  using statuses = MPI_Fint*;

  using size = const MPI_Aint*;
  using hint = const MPI_Fint*;
  using pointer = void**;
  using base = void*;
  using unit = const MPI_Fint*;
  using window = MPI_Fint*;

  using freed_op = MPI_Fint*;
  using freed_type = MPI_Fint*;
};

}  // namespace hips::mpi

// "macro(a), macro(b), ..." of up to nine arguments.
#define HIPS_MAP_1(macro, one) macro(one)
#define HIPS_MAP_2(macro, one, ...) macro(one), HIPS_MAP_1(macro, __VA_ARGS__)
#define HIPS_MAP_3(macro, one, ...) macro(one), HIPS_MAP_2(macro, __VA_ARGS__)
#define HIPS_MAP_4(macro, one, ...) macro(one), HIPS_MAP_3(macro, __VA_ARGS__)
#define HIPS_MAP_5(macro, one, ...) macro(one), HIPS_MAP_4(macro, __VA_ARGS__)
#define HIPS_MAP_6(macro, one, ...) macro(one), HIPS_MAP_5(macro, __VA_ARGS__)
#define HIPS_MAP_7(macro, one, ...) macro(one), HIPS_MAP_6(macro, __VA_ARGS__)
#define HIPS_MAP_8(macro, one, ...) macro(one), HIPS_MAP_7(macro, __VA_ARGS__)
#define HIPS_MAP_9(macro, one, ...) macro(one), HIPS_MAP_8(macro, __VA_ARGS__)
#define HIPS_TENTH(a, b, c, d, e, f, g, h, i, tenth, ...) tenth
#define HIPS_MAP(macro, ...)                                                                      \
  HIPS_TENTH(__VA_ARGS__, HIPS_MAP_9, HIPS_MAP_8, HIPS_MAP_7, HIPS_MAP_6, HIPS_MAP_5, HIPS_MAP_4, \
             HIPS_MAP_3, HIPS_MAP_2, HIPS_MAP_1)                                                  \
  (macro, __VA_ARGS__)

// Items of such lists. `name` is an argument of signatures.def.
#define HIPS_PARAMETER_OF_C(name) hips::mpi::TypesOfC::name name
#define HIPS_PARAMETER_OF_LARGE_C(name) hips::mpi::TypesOfLargeC::name name
#define HIPS_PARAMETER_OF_FORTRAN(name) hips::mpi::TypesOfFortran::name name
/// The argument itself.
#define HIPS_ARGUMENT(name) name
/// Of a designated initializer.
#define HIPS_FIELD(name) .name = name

// Text that only some collectives have, by the words of their lines. LARGE: where this MPI has large counts.
#if MPI_VERSION >= 4
#define HIPS_IF_LARGE_COUNTED(...) __VA_ARGS__
#else
#define HIPS_IF_LARGE_COUNTED(...)
#endif
#define HIPS_IF_LARGE_UNCOUNTED(...)
#define HIPS_IF_PERSISTENT(...) __VA_ARGS__
#define HIPS_IF_TRANSIENT(...)
#define HIPS_UNLESS_PERSISTENT(...)
#define HIPS_UNLESS_TRANSIENT(...) __VA_ARGS__
