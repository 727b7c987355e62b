// The collectives of Fortran. Where native MPI has another ABI, its own function gets the arguments
// unchanged.

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include "lib/mpi/calls/barrier_call.hpp"
#include "lib/mpi/calls/bcast_call.hpp"
#include "lib/mpi/calls/dispatch.hpp"
#include "lib/mpi/calls/gather_calls.hpp"
#include "lib/mpi/calls/reduction_calls.hpp"
#include "lib/mpi/fortran/arguments.hpp"

// Only a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace mpi = hips::mpi;

namespace {

/// MPICH's handles of Fortran can be read under any MPI: native_address() refuses others.
bool can_read_handles() {
#ifdef HIPS_MPI_ABI_OPENMPI
  return mpi::native_mpi() != nullptr;
#else
  return true;
#endif
}

MPI_Request null_request() {
#ifdef HIPS_MPI_ABI_OPENMPI
  return mpi::native_mpi()->no_request;
#else
  return MPI_REQUEST_NULL;
#endif
}

void return_code(int code, MPI_Fint* ierror) {
  if (ierror) *ierror = code;
}

/// Returns a request, too, where one was made.
void return_request(int code, MPI_Request made, MPI_Fint* request, MPI_Fint* ierror) {
  if (code == MPI_SUCCESS) *request = mpi::request_to_fortran(made);
  return_code(code, ierror);
}

}  // namespace

extern "C" {

// clang-format off
#define HIPS_COLLECTIVE(Class, Name, name, NAME, counts, persistence, ...) HIPS_IF_WRAPPED_##counts(     \
  HIPS_API void HIPS_FORTRAN(name)(HIPS_MAP(HIPS_PARAMETER_OF_FORTRAN, __VA_ARGS__),                     \
                                   MPI_Fint* ierror) {                                                   \
    if (!can_read_handles()) {                                                                           \
      static constinit mpi::NativeFortran<decltype(HIPS_FORTRAN(name))> next;                            \
      return next.get(HIPS_NATIVE_FORTRAN(name))(HIPS_MAP(HIPS_ARGUMENT, __VA_ARGS__), ierror);          \
    }                                                                                                    \
    return_code(mpi::call_blocking<mpi::Class>(                                                          \
                    {HIPS_MAP(HIPS_FIELD_FROM_FORTRAN, __VA_ARGS__)}),                                   \
                ierror);                                                                                 \
  }                                                                                                      \
  HIPS_FORTRAN_NAMES(mpi_##name, MPI_##NAME, MPI_##Name)                                                 \
                                                                                                         \
  HIPS_API void HIPS_FORTRAN(i##name)(HIPS_MAP(HIPS_PARAMETER_OF_FORTRAN, __VA_ARGS__),                  \
                                      MPI_Fint* request, MPI_Fint* ierror) {                             \
    if (!can_read_handles()) {                                                                           \
      static constinit mpi::NativeFortran<decltype(HIPS_FORTRAN(i##name))> next;                         \
      return next.get(HIPS_NATIVE_FORTRAN(i##name))(HIPS_MAP(HIPS_ARGUMENT, __VA_ARGS__), request,       \
                                                    ierror);                                             \
    }                                                                                                    \
    MPI_Request made = null_request();                                                                   \
    const int code = mpi::start_nonblocking<mpi::Class>(                                                 \
        {HIPS_MAP(HIPS_FIELD_FROM_FORTRAN, __VA_ARGS__)}, &made);                                        \
    return_request(code, made, request, ierror);                                                         \
  }                                                                                                      \
  HIPS_FORTRAN_NAMES(mpi_i##name, MPI_I##NAME, MPI_I##name))
#include "lib/mpi/signatures.def"

// The persistent forms, of Open MPI alone; before MPI 4 they had other names.
#if defined(HIPS_MPI_ABI_OPENMPI) && MPI_VERSION >= 4
#define HIPS_FORTRAN_INIT(name) mpi_##name##_init_
#define HIPS_FORTRAN_INIT_NAMES(name, NAME, Name) \
  HIPS_FORTRAN_NAMES(mpi_##name##_init, MPI_##NAME##_INIT, MPI_##Name##_init)
#elif defined(HIPS_MPI_ABI_OPENMPI) && defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define HIPS_FORTRAN_INIT(name) mpix_##name##_init_
#define HIPS_FORTRAN_INIT_NAMES(name, NAME, Name) \
  HIPS_FORTRAN_NAMES(mpix_##name##_init, MPIX_##NAME##_INIT, MPIX_##Name##_init)
#endif
#ifdef HIPS_FORTRAN_INIT
#define HIPS_COLLECTIVE(Class, Name, name, NAME, counts, persistence, ...) HIPS_IF_##persistence(        \
  HIPS_API void HIPS_FORTRAN_INIT(name)(HIPS_MAP(HIPS_PARAMETER_OF_FORTRAN, __VA_ARGS__),                \
                                        const MPI_Fint* info, MPI_Fint* request, MPI_Fint* ierror) {     \
    if (!can_read_handles()) {                                                                           \
      static constinit mpi::NativeFortran<decltype(HIPS_FORTRAN_INIT(name))> next;                       \
      return next.get("pmpi_" #name "_init_", "pmpix_" #name "_init_")(                                  \
          HIPS_MAP(HIPS_ARGUMENT, __VA_ARGS__), info, request, ierror);                                  \
    }                                                                                                    \
    MPI_Request made = null_request();                                                                   \
    const int code = mpi::init_persistent<mpi::Class>(                                                   \
        {HIPS_MAP(HIPS_FIELD_FROM_FORTRAN, __VA_ARGS__)}, mpi::FromFortran::info(info), &made);          \
    return_request(code, made, request, ierror);                                                         \
  }                                                                                                      \
  HIPS_FORTRAN_INIT_NAMES(name, NAME, Name))
#include "lib/mpi/signatures.def"
#endif
// clang-format on
}
