#include "lib/mpi/mixed.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "lib/base/clock.hpp"
#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/host_requests.hpp"
#include "lib/mpi/process.hpp"

namespace hips::mpi {
namespace {

constexpr int kTurnsPerLook = 64;  ///< between two looks at the clock
/// As long as whoever waits in HiPS alone stays silent (comm::Patience).
constexpr std::int64_t kLongNs = 1'000'000'000;
constexpr std::chrono::microseconds kNap{50};

}  // namespace

Mixed::Mixed(int count, MPI_Request* requests) : requests_(requests) {
  std::size_t num_ours = 0;
  const MPI_Request none = host()->no_request;
  for (int i = 0; i < count; ++i) {
    if (Requests::is_ours(requests[i]))
      ++num_ours;
    else if (requests[i] != none)
      has_hosts_ = true;
  }
  if (num_ours > few_.size()) many_.resize(num_ours);
  ours_ = num_ours > few_.size() ? std::span<Ours>(many_) : std::span<Ours>(few_).first(num_ours);
  std::size_t next = 0;
  for (int i = 0; i < count; ++i) {
    if (!Requests::is_ours(requests[i])) continue;
    Ours& one = ours_[next++];
    one = {i, Requests::process().find(requests[i]), requests[i]};
    if (one.request == nullptr) has_stale_ = true;
    requests[i] = none;
  }
}

Mixed::~Mixed() {
  for (const Ours& one : ours_) requests_[one.index] = one.handle;
}

bool Mixed::has_active() const {
  return std::ranges::any_of(ours_, [](const Ours& one) { return one.request->active(); });
}

bool Mixed::test() {
  // To test one that goes on is to move them all; a thousand in flight must not be moved a thousand times.
  while (first_ < ours_.size() && ours_[first_].request->test()) ++first_;
  if (first_ == ours_.size()) return true;
  // Each is looked after in its turn, so that what one lacks is asked for though another is waited for.
  ours_[turn_++ % ours_.size()].request->test();
  return false;
}

bool Mixed::share_communicator() {
  if (share_communicator_) return true;
  HipsRequest* one_of_them = nullptr;
  for (const Ours& one : ours_) {
    if (!one.request->active()) continue;
    if (one_of_them == nullptr)
      one_of_them = one.request;
    else if (!one_of_them->shares_communicator_with(*one.request))
      return false;
  }
  return share_communicator_ = true;
}

bool Mixed::wait_for_ours(const Process& process, bool any_may_do) {
  if (has_hosts_ || first_ == ours_.size() || process.thread_mode() == ThreadMode::kMultiple) return false;
  const auto goes_on = [](const Ours& one) { return !one.request->has_ended(); };
  if (any_may_do && std::ranges::any_of(ours_.subspan(first_ + 1), goes_on)) return false;
  if (!share_communicator()) return false;
  wait_for_first();
  return true;
}

void Mixed::wait_for_first() {
  while (first_ < ours_.size() && ours_[first_].request->test()) ++first_;
  if (first_ < ours_.size()) ours_[first_].request->wait();
}

Finished finish(HipsRequest& request, MPI_Request& handle) {
  const auto [status, unpacked] = request.finish();
  CommRecord& record = request.record();
  Finished end{unpacked, record.comm()};
  if (!status.ok()) end.code = tell_error(record, status, request.function());
  if (!request.persistent()) {
    Requests::process().remove(handle);
    handle = host()->no_request;
  }
  return end;
}

void set_empty(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  // The host knows what an empty status looks like.
  const int error = status->MPI_ERROR;
  MPI_Request none = host()->no_request;
  host_requests().Wait(&none, status);
  status->MPI_ERROR = error;
}

void Turns::next() {
  process_.progress_host();
  if (is_long_)
    std::this_thread::sleep_for(kNap);
  else
    sched_yield();
  if (turns_++ % kTurnsPerLook != 0) return;
  const std::int64_t now_ns = SystemClock::instance().now_ns();
  if (turns_ == 1) begin_ns_ = now_ns;
  is_long_ = now_ns - begin_ns_ > kLongNs;
}

}  // namespace hips::mpi
