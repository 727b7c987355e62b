#pragma once

#include <mpi.h>

#include <exception>
#include <new>

#include "lib/mpi/error.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/mixed.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/requests.hpp"

namespace hips::mpi {

/// Runs the body of a function of MPI for requests: nothing may be thrown into a program of C or Fortran.
template <typename Body>
int guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return raise_code(host()->world, MPI_ERR_NO_MEM);
  } catch (const std::exception&) {
    return raise_code(host()->world, MPI_ERR_INTERN);
  }
}

/// The same with this process, or `late()` where MPI_Finalize has ended all requests of ours, or in a child
/// of fork().
template <typename Body, typename Late>
int with_requests(const Body& body, const Late& late) {
  return guarded([&] {
    Process* const process = Process::active();
    return process == nullptr ? late() : body(*process);
  });
}

/// And for the one request behind a handle of ours.
template <typename Body, typename Late>
int with_request(MPI_Request handle, const Body& body, const Late& late) {
  return with_requests(
      [&](Process& process) {
        HipsRequest* const request = Requests::process().find(handle);
        return request == nullptr ? raise_code(host()->world, MPI_ERR_REQUEST) : body(process, *request);
      },
      late);
}

/// A late call that completes: of ours each has ended, and its handle stands for an inactive persistent
/// request, for which, as for a null one, every host gives an empty status.
template <typename HostCall>
int with_inactive(int count, MPI_Request* requests, const HostCall& call) {
  const Mixed ours_are_null(count, requests);
  return call();
}

}  // namespace hips::mpi
