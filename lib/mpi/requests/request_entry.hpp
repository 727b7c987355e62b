#pragma once

#include <mpi.h>

#include <exception>
#include <new>

#include "lib/mpi/communicators/error.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/process/mpi_process.hpp"
#include "lib/mpi/requests/mixed_requests.hpp"
#include "lib/mpi/requests/request_table.hpp"

namespace hips::mpi {

/// Runs the body of a function of MPI for requests. Nothing may be thrown into a program of C or Fortran.
template <typename Body>
int catching(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return raise_code(native_mpi()->world, MPI_ERR_NO_MEM);
  } catch (const std::exception&) {
    return raise_code(native_mpi()->world, MPI_ERR_INTERN);
  }
}

/// The same with the process, or `late()` after MPI_Finalize has ended all requests of ours, and in a child
/// of fork().
template <typename Body, typename Late>
int with_requests(const Body& body, const Late& late) {
  return catching([&] {
    MpiProcess* const process = MpiProcess::active();
    return process == nullptr ? late() : body(*process);
  });
}

/// The same with the one request behind a handle of ours.
template <typename Body, typename Late>
int with_request(MPI_Request handle, const Body& body, const Late& late) {
  return with_requests(
      [&](MpiProcess& process) {
        MpiRequest* const request = RequestTable::process().find(handle);
        return request == nullptr ? raise_code(native_mpi()->world, MPI_ERR_REQUEST)
                                  : body(process, *request);
      },
      late);
}

/// A late call that completes: all requests of ours have ended, and a handle of ours acts as an inactive
/// persistent request, for which native MPI gives an empty status, as for a null one.
template <typename NativeCall>
int with_inactive(int count, MPI_Request* requests, const NativeCall& call) {
  const MixedRequests ours_are_null(count, requests);
  return call();
}

}  // namespace hips::mpi
