// The collectives of C: each makes its ProgramCall of the arguments and dispatches it.

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <hips/hips.h>

#include "lib/mpi/calls/barrier_call.hpp"
#include "lib/mpi/calls/bcast_call.hpp"
#include "lib/mpi/calls/dispatch.hpp"
#include "lib/mpi/calls/gather_calls.hpp"
#include "lib/mpi/calls/reduction_calls.hpp"
#include "lib/mpi/signatures.hpp"

namespace mpi = hips::mpi;

extern "C" {

// clang-format off
#define HIPS_COLLECTIVE(Class, Name, name, NAME, counts, persistence, ...)                               \
  HIPS_API int MPI_##Name(HIPS_MAP(HIPS_PARAMETER_OF_C, __VA_ARGS__)) {                                  \
    return mpi::call_blocking<mpi::Class>({HIPS_MAP(HIPS_FIELD, __VA_ARGS__)});                          \
  }                                                                                                      \
  HIPS_API int MPI_I##name(HIPS_MAP(HIPS_PARAMETER_OF_C, __VA_ARGS__), MPI_Request* made) {              \
    return mpi::start_nonblocking<mpi::Class>({HIPS_MAP(HIPS_FIELD, __VA_ARGS__)}, made);                \
  }
#include "lib/mpi/signatures.def"

// The persistent forms, which Open MPI had under other names before MPI 4.
#if MPI_VERSION >= 4
#define HIPS_MPI_INIT(Name) MPI_##Name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define HIPS_MPI_INIT(Name) MPIX_##Name##_init
#endif
#ifdef HIPS_MPI_INIT
#define HIPS_COLLECTIVE(Class, Name, name, NAME, counts, persistence, ...) HIPS_IF_##persistence(        \
  HIPS_API int HIPS_MPI_INIT(Name)(HIPS_MAP(HIPS_PARAMETER_OF_C, __VA_ARGS__), MPI_Info info,            \
                                   MPI_Request* made) {                                                  \
    return mpi::init_persistent<mpi::Class>({HIPS_MAP(HIPS_FIELD, __VA_ARGS__)}, info, made);            \
  })
#include "lib/mpi/signatures.def"
#endif

// The forms with large counts.
#define HIPS_LARGE_FIELDS(...) {HIPS_MAP(HIPS_FIELD, __VA_ARGS__), .is_large = true}
#define HIPS_COLLECTIVE(Class, Name, name, NAME, counts, persistence, ...) HIPS_IF_LARGE_##counts(       \
  HIPS_API int MPI_##Name##_c(HIPS_MAP(HIPS_PARAMETER_OF_LARGE_C, __VA_ARGS__)) {                        \
    return mpi::call_blocking<mpi::Class>(HIPS_LARGE_FIELDS(__VA_ARGS__));                               \
  }                                                                                                      \
  HIPS_API int MPI_I##name##_c(HIPS_MAP(HIPS_PARAMETER_OF_LARGE_C, __VA_ARGS__), MPI_Request* made) {    \
    return mpi::start_nonblocking<mpi::Class>(HIPS_LARGE_FIELDS(__VA_ARGS__), made);                     \
  }                                                                                                      \
  HIPS_IF_##persistence(                                                                                 \
  HIPS_API int MPI_##Name##_init_c(HIPS_MAP(HIPS_PARAMETER_OF_LARGE_C, __VA_ARGS__), MPI_Info info,      \
                                   MPI_Request* made) {                                                  \
    return mpi::init_persistent<mpi::Class>(HIPS_LARGE_FIELDS(__VA_ARGS__), info, made);                 \
  }))
#include "lib/mpi/signatures.def"
// clang-format on
}
