#pragma once

#include <mpi.h>

#include "lib/mpi/mixed.hpp"

namespace hips::mpi {

/// Completes one of ours, whose test() is true, for a function that completes one request.
int complete_one(HipsRequest& request, MPI_Request& handle, MPI_Status* status);

/// Completes all of ours, for a function that has just had the host complete all of its own: `host_code` is
/// MPI_SUCCESS or MPI_ERR_IN_STATUS, and `statuses` has what the host wrote.
int complete_all(Mixed& mixed, int host_code, int count, MPI_Status* statuses);

/// One round of MPI_Testany: `flag` also where there is nothing to complete.
int try_any(Mixed& mixed, int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status);

/// One round of MPI_Testsome.
int try_some(Mixed& mixed, int count, MPI_Request* requests, int* num_done, int* indices,
             MPI_Status* statuses);

}  // namespace hips::mpi
