#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hips/hips.h>
#include <hips/last_error.hpp>
#include <hips/status.hpp>

namespace hips {

/// A call that was started and may still be outstanding: Communicator::iallreduce(), or allreduce_init() and
/// start(). While it is outstanding its buffers belong to it; when it fails they are undefined.
///
///     hips::Request request = comm.iallreduce(gradient, hips::ReduceOp::kSum);
///     while (!request.test()) compute_a_little();
///
/// Threads  one at a time; different requests from different threads at once.
/// Errors   start(), test() and wait() throw Error as the blocking call does. When test() or wait() throws,
///          the call has ended; the request is then empty or, if it is persistent, may be started again.
class Request {
 public:
  Request() = default;  ///< of no call
  Request(Request&& other) noexcept : request_(std::exchange(other.request_, nullptr)) {}
  /// Ends the old call first, as the destructor does.
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      end();
      request_ = std::exchange(other.request_, nullptr);
    }
    return *this;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  /// Ends an outstanding call. The buffers are never written after it.
  ///
  /// - In normal flow it waits as wait() does: a late peer is waited for without end, unless HIPS_TIMEOUT is
  ///   set.
  /// - While an exception unwinds the stack, this rank may never make the calls that other ranks wait for. It
  ///   waits for HIPS_TIMEOUT or, when none is set, HIPS_DEAD_AFTER (4 s). If the call has not ended by then,
  ///   it aborts the communicator: the call ends on every rank with kAborted, which names this rank, and no
  ///   peer waits for ever. See hips_request_abandon().
  ~Request() { end(); }

  /// Starts a persistent call once more. kInvalidArgument: it is outstanding, or not persistent.
  void start() { throw_if_failed(hips_start(request_)); }
  /// True when the call has ended, or when there is none. Waits for no peer; when several threads use one
  /// communicator it waits for its turn, some milliseconds at most.
  bool test() {
    int done = 0;
    throw_if_failed(hips_test(&request_, &done));
    return done != 0;
  }
  /// Blocks until the call has ended.
  void wait() { throw_if_failed(hips_wait(&request_)); }

  /// Takes a request of the C API over; null: of no call.
  [[nodiscard]] static Request adopt(hips_request_t request) { return Request(request); }
  /// For calls of the C API; still owned by this object. Null when there is no call.
  [[nodiscard]] hips_request_t handle() const { return request_; }

 private:
  friend class Communicator;
  friend void wait_all(std::span<Request> requests);
  friend bool test_all(std::span<Request> requests);
  friend std::optional<std::size_t> wait_any(std::span<Request> requests);
  explicit Request(hips_request_t request) : request_(request) {}

  void end() noexcept {
    if (std::uncaught_exceptions() > exceptions_)
      (void)hips_request_abandon(&request_);
    else
      (void)hips_wait(&request_);
    (void)hips_request_free(&request_);
  }

  /// Runs a call of the C API that takes an array of requests and ends some of them.
  template <typename Call>
  static void with_handles(std::span<Request> requests, Call call) {
    std::vector<hips_request_t> handles;
    handles.reserve(requests.size());
    for (const Request& request : requests) handles.push_back(request.request_);
    const hips_status_t status = call(handles.data());
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i].request_ = handles[i];
    throw_if_failed(status);
  }

  hips_request_t request_ = nullptr;
  /// A request may be made and end normally inside a destructor that runs while the stack unwinds.
  int exceptions_ = std::uncaught_exceptions();
};

/// Blocks until all calls have ended.
///
/// Errors   throws the Error of the first, in the order of the list, that failed; all have ended either way.
inline void wait_all(std::span<Request> requests) {
  Request::with_handles(requests,
                        [&](hips_request_t* handles) { return hips_waitall(requests.size(), handles); });
}

/// True when all calls have ended; otherwise ends none of the requests. Errors as wait_all().
[[nodiscard]] inline bool test_all(std::span<Request> requests) {
  int done = 0;
  Request::with_handles(
      requests, [&](hips_request_t* handles) { return hips_testall(requests.size(), handles, &done); });
  return done != 0;
}

/// Blocks until one of the outstanding calls has ended, and gives its place in the list; empty when no call
/// is outstanding.
///
/// Errors   throws the Error of the call that ended, whose request is then as after wait(). After
///          HIPS_TIMEOUT it waits for the first of them as wait() does.
/// Example  while (const auto i = hips::wait_any(requests)) use(layers[*i]);
inline std::optional<std::size_t> wait_any(std::span<Request> requests) {
  std::size_t index = HIPS_INDEX_NONE;
  Request::with_handles(
      requests, [&](hips_request_t* handles) { return hips_waitany(requests.size(), handles, &index); });
  if (index == HIPS_INDEX_NONE) return std::nullopt;
  return index;
}

}  // namespace hips
