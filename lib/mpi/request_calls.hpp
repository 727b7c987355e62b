#pragma once

#include <mpi.h>

namespace hips::mpi {

// The functions of MPI for requests, as the program called them, where Requests::any_of() says that one of
// ours is among the requests; all others go to the host as they are. Whatever collective made it, a request
// is completed here.
//
// Liveness  a wait on one of ours alone waits as a blocking call does. Where the host's are among them, or
//           another thread may need HiPS, both sides move in turn; peers that are missing are asked as ever,
//           and HIPS_TIMEOUT begins where a call needs ours to complete and has waited for a second.
// Errors    of ours: through the error handler of the communicator, that of MPI_COMM_WORLD once it has been
//           freed; MPI_ERR_IN_STATUS where several requests may complete. MPI_ERR_REQUEST: a handle of a
//           request that has gone. Once MPI_Finalize has ended ours, as programs can see in callbacks of
//           their own, each handle is one of an inactive persistent request, to be completed and freed.
// Threads   as MPI's.

// wait.cpp
int wait(MPI_Request* request, MPI_Status* status);
int waitall(int count, MPI_Request* requests, MPI_Status* statuses);
int waitany(int count, MPI_Request* requests, int* index, MPI_Status* status);
int waitsome(int count, MPI_Request* requests, int* num_done, int* indices, MPI_Status* statuses);

// test.cpp
int test(MPI_Request* request, int* flag, MPI_Status* status);
int testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses);
int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status);
int testsome(int count, MPI_Request* requests, int* num_done, int* indices, MPI_Status* statuses);
int request_get_status(MPI_Request request, int* flag, MPI_Status* status);

// start.cpp
int start(MPI_Request* request);
/// The host's among them, one by one.
int startall(int count, MPI_Request* requests);
/// Of one that is not under way: of others MPI does not allow it for collectives, nor to cancel them.
int request_free(MPI_Request* request);
int cancel(MPI_Request* request);

}  // namespace hips::mpi
