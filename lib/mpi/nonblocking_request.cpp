#include "lib/mpi/nonblocking_request.hpp"

#include <utility>

#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/host_progress.hpp"
#include "lib/mpi/requests.hpp"

namespace hips::mpi {

Result<std::unique_ptr<HipsRequest>> make_nonblocking(CommRecord& record, const char* function,
                                                      const comm::CallArgs& args,
                                                      std::unique_ptr<HostedCall> unpacks) {
  auto call = record.take_spare();
  if (call) {
    if (Status status = call->renew(args); !status.ok()) return fail(std::move(status));
  } else {
    auto fresh = record.communicator()->prepare_request(args);
    if (!fresh) return fail(fresh.error());
    call = std::move(*fresh);
  }
  return std::make_unique<HipsRequest>(record.shared_from_this(), std::move(call), function,
                                       args.count * size_of(args.type), std::move(unpacks));
}

int hand_out(MPI_Comm comm, std::unique_ptr<HipsRequest> made, bool starts, MPI_Request* request) {
  hook_host_progress();
  HipsRequest& one = *made;
  const char* const function = one.function();
  // Its record outlives it: it hangs on the communicator.
  CommRecord& record = one.record();
  MPI_Request handle = host()->no_request;
  if (!Requests::process().add(std::move(made), handle)) return raise_code(comm, MPI_ERR_NO_MEM);
  if (starts) {
    if (const Status status = one.start(); !status.ok()) {
      Requests::process().remove(handle);
      return raise_error(comm, record, status, function);
    }
  }
  *request = handle;
  return MPI_SUCCESS;
}

}  // namespace hips::mpi
