#pragma once

#include <mpi.h>

namespace hips::mpi {

// clang-format off
/// What completes requests, and MPI_Iallreduce.
#define HIPS_MPI_REQUEST_FUNCTIONS(X)                                                                    \
  X(Iallreduce) X(Start) X(Startall) X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall)       \
  X(Testany) X(Testsome) X(Request_free) X(Request_get_status) X(Cancel) X(Request_c2f) X(Request_f2c)
// clang-format on

/// The host's functions for requests, under their profiling names. Unlike those of host() they are called
/// under any MPI, since every request of the program passes by here: under one of another ABI with arguments
/// that nobody has read.
struct HostRequests {
#define HIPS_MPI_HOST_MEMBER(name) decltype(&PMPI_##name) name = nullptr;
  HIPS_MPI_REQUEST_FUNCTIONS(HIPS_MPI_HOST_MEMBER)
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
