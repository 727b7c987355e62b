#include "lib/mpi/requests/mpi_request.hpp"

#include <utility>

#include "lib/base/wait/clock.hpp"
#include "lib/mpi/calls/program_call.hpp"
#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/communicators/error.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/native/progress_hook.hpp"
#include "lib/mpi/requests/request_table.hpp"

namespace hips::mpi {

Result<std::unique_ptr<MpiRequest>> MpiRequest::make_nonblocking(CommRecord& record, const char* function,
                                                                 const ProgramCall& call,
                                                                 std::unique_ptr<KeptCall> kept) {
  auto prepared = record.take_spare();
  if (prepared) {
    if (Status status = prepared->renew(call.args); !status.ok()) return fail(std::move(status));
  } else {
    auto fresh = record.communicator()->prepare_request(call.args);
    if (!fresh) return fail(fresh.error());
    prepared = std::move(*fresh);
  }
  return std::unique_ptr<MpiRequest>(
      new MpiRequest(record, nullptr, std::move(kept), std::move(prepared), function, call.bytes()));
}

Result<std::unique_ptr<MpiRequest>> MpiRequest::make_persistent(CommRecord& record,
                                                                std::unique_ptr<comm::Communicator> own,
                                                                const char* function, const ProgramCall& call,
                                                                std::unique_ptr<KeptCall> kept) {
  auto prepared = own->prepare_request(call.args);
  if (!prepared) return fail(prepared.error());
  return std::unique_ptr<MpiRequest>(
      new MpiRequest(record, std::move(own), std::move(kept), std::move(*prepared), function, call.bytes()));
}

MpiRequest::MpiRequest(CommRecord& record, std::unique_ptr<comm::Communicator> own,
                       std::unique_ptr<KeptCall> kept, std::unique_ptr<comm::Request> call,
                       const char* function, std::uint64_t bytes)
    : record_(record.shared_from_this()),
      own_(std::move(own)),
      kept_(std::move(kept)),
      call_(std::move(call)),
      function_(function),
      bytes_(bytes) {}

MpiRequest::~MpiRequest() {
  // The next call of this communicator then needs no new one.
  if (!own_) record_->keep_spare(std::move(call_));
}

Status MpiRequest::start() {
  const SystemClock& clock = SystemClock::instance();
  const bool counts = record_->counts();
  const std::int64_t begin_ns = counts ? clock.now_ns() : 0;
  if (Status status = call_->start(); !status.ok()) return status;
  active_ = true;
  end_.reset();
  if (!counts) return Status::success();
  CallTally tally{1, bytes_, clock.now_ns() - begin_ns};
  ++(persistent() ? tally.starts : tally.nonblocking);
  record_->count(tally);
  return Status::success();
}

bool MpiRequest::test() {
  if (!active_ || end_) return true;
  if (!call_->test()) return false;
  end(call_->wait());
  return true;
}

void MpiRequest::wait() {
  if (!active_ || end_) return;
  const SystemClock& clock = SystemClock::instance();
  const bool counts = record_->counts();
  const std::int64_t begin_ns = counts ? clock.now_ns() : 0;
  end(call_->wait());
  if (counts) record_->count({.time_ns = clock.now_ns() - begin_ns});
}

void MpiRequest::end(Status status) {
  end_ = End{std::move(status)};
  if (!kept_ || !end_->status.ok()) return;
  // The program may have freed the communicator that it passed.
  kept_->passed.comm = record_->comm();
  end_->unpacked = kept_->call->unpack();
}

MpiRequest::End MpiRequest::finish() {
  active_ = false;
  return std::exchange(end_, std::nullopt).value_or(End{});
}

int give_handle(MPI_Comm comm, std::unique_ptr<MpiRequest> made, bool starts, MPI_Request* handle) {
  add_progress_hook();
  MpiRequest& request = *made;
  const char* const function = request.function();
  // The record outlives the request: it is an attribute of the communicator.
  CommRecord& record = request.record();
  MPI_Request added = native_mpi()->no_request;
  if (!RequestTable::process().add(std::move(made), added)) return raise_code(comm, MPI_ERR_NO_MEM);
  if (starts) {
    if (const Status status = request.start(); !status.ok()) {
      RequestTable::process().remove(added);
      return raise_error(comm, record, status, function);
    }
  }
  *handle = added;
  return MPI_SUCCESS;
}

}  // namespace hips::mpi
