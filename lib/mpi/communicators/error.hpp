#pragma once

#include <mpi.h>

#include <hips/status.hpp>

namespace hips::mpi {

class CommRecord;

/// Reports a failed call in MPI's way: through the error handler of its communicator.
///
/// Prints one line on stderr, once for each communicator, then calls the handler with an error code whose
/// MPI_Error_string is that sentence. The default handler ends the job; where a handler returns, this returns
/// the code. `function` is the function that the program called.
int raise_error(MPI_Comm comm, CommRecord& record, const Status& status, const char* function);

/// The first half: prints, and returns the code.
int print_error(CommRecord& record, const Status& status, const char* function);
/// The second half, for a code of MPI or of print_error().
int raise_code(MPI_Comm comm, int code);

}  // namespace hips::mpi
