// The functions of C that start and complete requests. For requests of native MPI they cost a look at each
// handle where the program has any request of ours, and one load where it has none.

#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/requests/request_calls.hpp"
#include "lib/mpi/requests/request_table.hpp"
#include "lib/mpi/signatures.hpp"

namespace mpi = hips::mpi;
using hips::mpi::native_requests;
using hips::mpi::RequestTable;

extern "C" {

// The requests of a function, by its first argument.
#define HIPS_REQUESTS_OF_request 1, request
#define HIPS_REQUESTS_OF_handle 1, &handle
#define HIPS_REQUESTS_OF_length length, requests

#define HIPS_REQUEST_FUNCTION(Name, name, NAME, first, ...)                                         \
  HIPS_API int MPI_##Name(HIPS_MAP(HIPS_PARAMETER_OF_C, first __VA_OPT__(, ) __VA_ARGS__)) {        \
    return RequestTable::any_of(HIPS_REQUESTS_OF_##first)                                           \
               ? mpi::name(HIPS_MAP(HIPS_ARGUMENT, first __VA_OPT__(, ) __VA_ARGS__))               \
               : native_requests().Name(HIPS_MAP(HIPS_ARGUMENT, first __VA_OPT__(, ) __VA_ARGS__)); \
  }
#include "lib/mpi/signatures.def"
#undef HIPS_REQUESTS_OF_request
#undef HIPS_REQUESTS_OF_handle
#undef HIPS_REQUESTS_OF_length

// Elsewhere a handle of Fortran is the one of C.
#ifdef HIPS_MPI_ABI_OPENMPI
HIPS_API MPI_Fint MPI_Request_c2f(MPI_Request request) {
  return RequestTable::any_of(1, &request) ? RequestTable::to_fortran(request)
                                           : native_requests().Request_c2f(request);
}

HIPS_API MPI_Request MPI_Request_f2c(MPI_Fint request) {
  return RequestTable::is_ours_in_fortran(request) ? RequestTable::from_fortran(request)
                                                   : native_requests().Request_f2c(request);
}
#endif
}
