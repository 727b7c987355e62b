#pragma once

#include <mpi.h>

#include "lib/mpi/requests/mixed_requests.hpp"

namespace hips::mpi {

/// Completes a request of ours whose test() is true, for a function that completes one request.
int complete_one(MpiRequest& request, MPI_Request& handle, MPI_Status* status);

/// Completes all of ours, for a function in which native MPI has just completed all of its own: `native_code`
/// is MPI_SUCCESS or MPI_ERR_IN_STATUS, and `statuses` has what native MPI wrote.
int complete_all(MixedRequests& mixed, int native_code, int count, MPI_Status* statuses);

/// One round of MPI_Testany: `flag` is also set where there is nothing to complete.
int try_any(MixedRequests& mixed, int count, MPI_Request* requests, int* index, int* flag,
            MPI_Status* status);

/// One round of MPI_Testsome.
int try_some(MixedRequests& mixed, int count, MPI_Request* requests, int* num_done, int* indices,
             MPI_Status* statuses);

}  // namespace hips::mpi
