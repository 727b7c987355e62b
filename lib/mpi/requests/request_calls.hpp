#pragma once

#include <mpi.h>

namespace hips::mpi {

// The functions of MPI for requests, called if RequestTable::any_of() finds a request of HiPS among the
// arguments; all other calls go to native MPI unchanged. They complete requests of every collective.
//
// Liveness  a wait for requests of ours alone waits as a blocking call does. Where requests of native MPI are
//           among them, or another thread may need HiPS, both libraries make progress in alternation; missing
//           peers are asked as usual, and HIPS_TIMEOUT begins where completion needs a request of ours and
//           the call has waited for a second.
// Errors    of our requests: through the error handler of the communicator, that of MPI_COMM_WORLD once it
// has
//           been freed; MPI_ERR_IN_STATUS where several requests may complete. MPI_ERR_REQUEST: a handle that
//           has no request any longer. After MPI_Finalize has ended ours, which programs can see in callbacks
//           of their own, each handle acts as an inactive persistent request: it can be completed and freed.
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
/// Requests of native MPI among them are started one by one.
int startall(int count, MPI_Request* requests);
/// For a request that is not outstanding. MPI allows neither this nor MPI_Cancel for outstanding collectives.
int request_free(MPI_Request* request);
int cancel(MPI_Request* request);

}  // namespace hips::mpi
