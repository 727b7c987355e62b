#include "lib/mpi/hips_request.hpp"

#include <utility>

#include "lib/base/clock.hpp"
#include "lib/mpi/carry.hpp"
#include "lib/mpi/comm_record.hpp"

namespace hips::mpi {

HipsRequest::HipsRequest(std::shared_ptr<CommRecord> record, std::unique_ptr<comm::Request> call,
                         const char* function, std::uint64_t bytes, std::unique_ptr<HostedCall> unpacks)
    : record_(std::move(record)),
      unpacks_(std::move(unpacks)),
      call_(std::move(call)),
      function_(function),
      bytes_(bytes) {}

HipsRequest::HipsRequest(std::shared_ptr<CommRecord> record, std::unique_ptr<comm::Communicator> own,
                         std::unique_ptr<comm::Request> call, const char* function, std::uint64_t bytes)
    : record_(std::move(record)),
      own_(std::move(own)),
      call_(std::move(call)),
      function_(function),
      bytes_(bytes) {}

HipsRequest::~HipsRequest() {
  // The next call of this communicator is as good as made.
  if (!own_) record_->keep_spare(std::move(call_));
}

Status HipsRequest::start() {
  const SystemClock& clock = SystemClock::instance();
  const bool counts = record_->counts();
  const std::int64_t begin_ns = counts ? clock.now_ns() : 0;
  if (Status status = call_->start(); !status.ok()) return status;
  active_ = true;
  end_.reset();
  if (!counts) return Status::success();
  Tally tally{1, bytes_, clock.now_ns() - begin_ns};
  ++(persistent() ? tally.starts : tally.nonblocking);
  record_->count(tally);
  return Status::success();
}

bool HipsRequest::test() {
  if (!active_ || end_) return true;
  if (!call_->test()) return false;
  end(call_->wait());
  return true;
}

void HipsRequest::wait() {
  if (!active_ || end_) return;
  const SystemClock& clock = SystemClock::instance();
  const bool counts = record_->counts();
  const std::int64_t begin_ns = counts ? clock.now_ns() : 0;
  end(call_->wait());
  if (counts) record_->count({.time_ns = clock.now_ns() - begin_ns});
}

void HipsRequest::end(Status status) {
  end_ = End{std::move(status)};
  if (!unpacks_ || !end_->status.ok()) return;
  // The program may have freed the communicator that it called.
  unpacks_->comm = record_->comm();
  end_->unpacked = unpacks_->unpack();
}

HipsRequest::End HipsRequest::finish() {
  active_ = false;
  return std::exchange(end_, std::nullopt).value_or(End{});
}

}  // namespace hips::mpi
