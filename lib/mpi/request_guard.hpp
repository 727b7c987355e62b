#pragma once

#include <mpi.h>

#include <exception>
#include <new>

#include "lib/mpi/error.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/requests.hpp"

namespace hips::mpi {

/// Runs the body of a function of MPI for requests: nothing may be thrown into a program of C or Fortran, and
/// after MPI_Finalize and in children of fork() no request of ours is any longer one.
template <typename Body>
int with_requests(const Body& body) {
  Process* const process = Process::active();
  if (process == nullptr) return MPI_ERR_REQUEST;
  try {
    return body(*process);
  } catch (const std::bad_alloc&) {
    return raise_code(host()->world, MPI_ERR_NO_MEM);
  } catch (const std::exception&) {
    return raise_code(host()->world, MPI_ERR_INTERN);
  }
}

/// The same for the one request behind a handle of ours.
template <typename Body>
int with_request(MPI_Request handle, const Body& body) {
  return with_requests([&](Process& process) {
    HipsRequest* const request = Requests::process().find(handle);
    return request == nullptr ? raise_code(host()->world, MPI_ERR_REQUEST) : body(process, *request);
  });
}

}  // namespace hips::mpi
