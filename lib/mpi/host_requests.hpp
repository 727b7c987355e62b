#pragma once

#include <mpi.h>

#include "lib/mpi/abi.hpp"

namespace hips::mpi {

// clang-format off
/// What completes requests, and MPI_Iallreduce.
#define HIPS_MPI_REQUEST_FUNCTIONS(X)                                                                    \
  X(Iallreduce) X(Start) X(Startall) X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall)       \
  X(Testany) X(Testsome) X(Request_free) X(Request_get_status) X(Cancel)
/// And what takes a request to Fortran and back, where a handle there is not the one of C.
#ifdef HIPS_MPI_ABI_OPENMPI
#define HIPS_MPI_REQUEST_FORTRAN_FUNCTIONS(X) X(Request_c2f) X(Request_f2c)
#else
#define HIPS_MPI_REQUEST_FORTRAN_FUNCTIONS(X)
#endif
// clang-format on

/// The host's functions for requests, under their profiling names. Unlike those of host() they are called
/// under any MPI, since every request of the program passes by here: under one of another ABI with arguments
/// that nobody has read (host_function()).
struct HostRequests {
#define HIPS_MPI_HOST_MEMBER(name) decltype(&PMPI_##name) name = nullptr;
  HIPS_MPI_REQUEST_FUNCTIONS(HIPS_MPI_HOST_MEMBER)
  HIPS_MPI_REQUEST_FORTRAN_FUNCTIONS(HIPS_MPI_HOST_MEMBER)
#undef HIPS_MPI_HOST_MEMBER
};

namespace detail {
HostRequests look_up_host_requests();
}

/// Threads  any.
inline const HostRequests& host_requests() {
  static const HostRequests functions = detail::look_up_host_requests();
  return functions;
}

}  // namespace hips::mpi
