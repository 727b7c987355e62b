#pragma once

#include <mpi.h>

#include <hips/status.hpp>

namespace hips::mpi {

class CommRecord;

/// Reports a failed call the way MPI does: through the error handler of its communicator.
///
/// Prints one line on stderr, once for each communicator, then calls the handler with an error code whose
/// MPI_Error_string is the sentence. The default handler ends the job; where it returns, so does this, with
/// that code. `function` is what the program called.
int raise_error(MPI_Comm comm, CommRecord& record, const Status& status, const char* function);

/// Its first half: prints, and gives the code.
int tell_error(CommRecord& record, const Status& status, const char* function);
/// Its second half, for a code of MPI's or of tell_error().
int raise_code(MPI_Comm comm, int code);

}  // namespace hips::mpi
