#include "lib/mpi/requests/mixed_requests.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "lib/base/wait/clock.hpp"
#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/communicators/error.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/process/mpi_process.hpp"

namespace hips::mpi {
namespace {

constexpr int kRoundsPerClockRead = 64, kRoundsPerNap = 16;
/// As long as a wait in HiPS alone waits before it asks for missing ranks.
constexpr std::int64_t kLongNs = 1'000'000'000;
constexpr std::chrono::microseconds kNap{50};

}  // namespace

MixedRequests::MixedRequests(int count, MPI_Request* requests) : requests_(requests) {
  std::size_t num_ours = 0;
  const MPI_Request none = native_mpi()->no_request;
  for (int i = 0; i < count; ++i) {
    if (RequestTable::is_ours(requests[i]))
      ++num_ours;
    else if (requests[i] != none)
      has_native_ = true;
  }
  if (num_ours > few_.size()) many_.resize(num_ours);
  ours_ = num_ours > few_.size() ? std::span<Ours>(many_) : std::span<Ours>(few_).first(num_ours);
  std::size_t next = 0;
  for (int i = 0; i < count; ++i) {
    if (!RequestTable::is_ours(requests[i])) continue;
    Ours& one = ours_[next++];
    one = {i, RequestTable::process().find(requests[i]), requests[i]};
    if (one.request == nullptr) has_stale_ = true;
    requests[i] = none;
  }
}

MixedRequests::~MixedRequests() {
  for (const Ours& one : ours_) requests_[one.index] = one.handle;
}

bool MixedRequests::has_active() const {
  return std::ranges::any_of(ours_, [](const Ours& one) { return one.request->active(); });
}

bool MixedRequests::test() {
  // Testing one outstanding request makes progress with all; a thousand of them must not be progressed a
  // thousand times.
  while (first_ < ours_.size() && ours_[first_].request->test()) ++first_;
  if (first_ == ours_.size()) return true;
  // One other each time, so that the ranks missing in any of them are asked for, whichever is waited for.
  ours_[next_tested_++ % ours_.size()].request->test();
  return false;
}

bool MixedRequests::share_communicator() {
  if (share_communicator_) return true;
  MpiRequest* one_of_them = nullptr;
  for (const Ours& one : ours_) {
    if (!one.request->active()) continue;
    if (one_of_them == nullptr)
      one_of_them = one.request;
    else if (!one_of_them->shares_communicator_with(*one.request))
      return false;
  }
  return share_communicator_ = true;
}

bool MixedRequests::wait_for_ours(const MpiProcess& process, bool returns_with_first) {
  if (has_native_ || first_ == ours_.size() || process.thread_mode() == ThreadMode::kSerialized) return false;
  const auto is_outstanding = [](const Ours& one) { return !one.request->has_ended(); };
  if (returns_with_first && std::ranges::any_of(ours_.subspan(first_ + 1), is_outstanding)) return false;
  if (!share_communicator()) return false;
  wait_for_first();
  return true;
}

void MixedRequests::wait_for_first() {
  while (first_ < ours_.size() && ours_[first_].request->test()) ++first_;
  if (first_ < ours_.size()) ours_[first_].request->wait();
}

RequestOutcome finish(MpiRequest& request, MPI_Request& handle) {
  const auto [status, unpacked] = request.finish();
  CommRecord& record = request.record();
  RequestOutcome outcome{unpacked, record.comm()};
  if (!status.ok()) outcome.code = print_error(record, status, request.function());
  if (!request.persistent()) {
    RequestTable::process().remove(handle);
    handle = native_mpi()->no_request;
  }
  return outcome;
}

void set_empty(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  // Native MPI knows what an empty status looks like.
  const int error = status->MPI_ERROR;
  MPI_Request none = native_mpi()->no_request;
  native_requests().Wait(&none, status);
  status->MPI_ERROR = error;
}

void AlternatingWait::next() {
  process_.progress_native();
  // Data may begin to flow after a long wait: then a nap in each round would be most of the time.
  if (is_long_ && rounds_ % kRoundsPerNap == 0)
    std::this_thread::sleep_for(kNap);
  else
    sched_yield();
  if (rounds_++ % kRoundsPerClockRead != 0) return;
  const std::int64_t now_ns = SystemClock::instance().now_ns();
  if (rounds_ == 1) begin_ns_ = now_ns;
  is_long_ = now_ns - begin_ns_ > kLongNs;
}

}  // namespace hips::mpi
