#pragma once

#include <mpi.h>

#include <cstdint>
#include <type_traits>

#include <hips/hips.h>

#include "lib/mpi/fortran/sentinel.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/signatures.hpp"

// What the wrappers for the bindings of Fortran share. Open MPI's bindings call PMPI_ functions and so bypass
// a wrapper of the C function: each binding needs wrappers of its own. Of MPICH's only mpi_f08 does, and only
// where no buffer is passed; a handle there is the one of C. All arguments are addresses. mpif.h and the
// module mpi call mpi_x_, the module mpi_f08 calls mpi_x_f08_ (a handle there is a struct of one INTEGER, a
// status one of as many as the array has, and ierror may be absent); the other names are those that other
// compilers use for the same function.

#ifdef HIPS_MPI_ABI_OPENMPI

/// mpi_wait_, and the name of native MPI's own function.
#define HIPS_FORTRAN(name) mpi_##name##_
#define HIPS_NATIVE_FORTRAN(name) "pmpi_" #name "_"

/// The other names of a function `lower`_; after its definition, inside extern "C".
#define HIPS_FORTRAN_NAMES(lower, UPPER, Mixed)                               \
  HIPS_API decltype(lower##_) lower __attribute__((alias(#lower "_")));       \
  HIPS_API decltype(lower##_) lower##__ __attribute__((alias(#lower "_")));   \
  HIPS_API decltype(lower##_) UPPER __attribute__((alias(#lower "_")));       \
  HIPS_API decltype(lower##_) Mixed##_f __attribute__((alias(#lower "_")));   \
  HIPS_API decltype(lower##_) Mixed##_f08 __attribute__((alias(#lower "_"))); \
  HIPS_API decltype(lower##_) lower##_f08_ __attribute__((alias(#lower "_")));

/// Text of collectives that need wrappers: all.
#define HIPS_IF_WRAPPED_COUNTED(...) __VA_ARGS__
#define HIPS_IF_WRAPPED_UNCOUNTED(...) __VA_ARGS__

#else

/// mpi_wait_f08_, and the name of native MPI's own function.
#define HIPS_FORTRAN(name) mpi_##name##_f08_
#define HIPS_NATIVE_FORTRAN(name) "pmpir_" #name "_f08_"

#define HIPS_FORTRAN_NAMES(lower, UPPER, Mixed)

/// Text of collectives that need wrappers: those without a buffer.
#define HIPS_IF_WRAPPED_COUNTED(...)
#define HIPS_IF_WRAPPED_UNCOUNTED(...) __VA_ARGS__

#endif

/// Of a designated initializer.
#define HIPS_FIELD_FROM_FORTRAN(name) .name = hips::mpi::FromFortran::name(name)
#define HIPS_ARGUMENT_FROM_FORTRAN(name) hips::mpi::FromFortran::name(name)

namespace hips::mpi {

/// A function of native MPI for Fortran: for an MPI whose handles we cannot read, and for requests of native
/// MPI.
template <typename Function>
using NativeFortran = NativeFunction<Function, native_symbol>;

/// Arguments of Fortran as C has them, each by its name in signatures.def.
struct FromFortran {
  static_assert(std::is_same_v<MPI_Fint, int>, "arrays of counts are passed on unchanged");

  static const void* in(const char* buffer) { return buffer_of(buffer); }
  static void* out(char* buffer) { return const_cast<void*>(buffer_of(buffer)); }
  static std::int64_t in_count(const MPI_Fint* count) { return *count; }
  static std::int64_t count(const MPI_Fint* count) { return *count; }
  static const int* counts(const MPI_Fint* counts) { return counts; }
  static const int* displs(const MPI_Fint* displs) { return displs; }
  static int root(const MPI_Fint* root) { return *root; }
  static MPI_Datatype in_type(const MPI_Fint* type) { return type_of(*type); }
  static MPI_Datatype type(const MPI_Fint* type) { return type_of(*type); }
  static MPI_Op op(const MPI_Fint* op);
  static MPI_Comm comm(const MPI_Fint* comm);
  static MPI_Info info(const MPI_Fint* info);

  static MPI_Aint size(const MPI_Aint* size) { return *size; }
  static MPI_Info hint(const MPI_Fint* /*hint*/) { return {}; }
  static void* pointer(void** pointer) { return static_cast<void*>(pointer); }
  static void* base(void* base) { return base; }

 private:
  /// Fortran has addresses of its own for MPI_IN_PLACE and MPI_BOTTOM.
  static const void* buffer_of(const void* buffer);
  static MPI_Datatype type_of(MPI_Fint type);
};

/// A request, ours or native MPI's.
MPI_Request request_to_c(MPI_Fint request);
MPI_Fint request_to_fortran(MPI_Request request);
/// Operations and types, as returned to the program.
MPI_Fint op_to_fortran(MPI_Op op);
MPI_Fint type_to_fortran(MPI_Datatype type);
/// .TRUE. as native MPI's compiler represents it.
MPI_Fint logical_to_fortran(int flag);

}  // namespace hips::mpi
