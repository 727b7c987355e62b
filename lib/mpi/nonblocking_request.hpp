#pragma once

#include <mpi.h>

#include <memory>

#include "lib/base/result.hpp"
#include "lib/comm/call_args.hpp"
#include "lib/mpi/carry.hpp"
#include "lib/mpi/hips_request.hpp"

namespace hips::mpi {

/// A non-blocking call on the record's communicator, as a request that is still to be started. `unpacks` is
/// null, or the call itself where that has memory of its own.
///
/// Errors   as comm::Communicator::prepare_request().
Result<std::unique_ptr<HipsRequest>> make_nonblocking(CommRecord& record, const char* function,
                                                      const comm::CallArgs& args,
                                                      std::unique_ptr<HostedCall> unpacks);

/// Gives the program a handle for a request, and starts it where `starts`. The program's error code, raised
/// on `comm`; no handle then, and no request.
int hand_out(MPI_Comm comm, std::unique_ptr<HipsRequest> made, bool starts, MPI_Request* request);

}  // namespace hips::mpi
