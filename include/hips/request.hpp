#pragma once

#include <string>
#include <utility>

#include <hips/hips.h>
#include <hips/last_error.hpp>
#include <hips/status.hpp>

namespace hips {

/// A call that was started and may still be under way: Communicator::iallreduce(), or allreduce_init() and
/// start(). While it is under way its buffers belong to it, and hold garbage where it fails.
///
///     hips::Request request = comm.iallreduce(std::span(gradient), hips::ReduceOp::kSum);
///     while (!request.test()) compute_a_little();
///
/// Threads  one at a time; different requests from different threads at once.
/// Errors   start(), test() and wait() throw Error as the blocking call does.
class Request {
 public:
  Request() = default;  ///< of no call
  Request(Request&& other) noexcept : request_(std::exchange(other.request_, nullptr)) {}
  Request& operator=(Request&& other) noexcept {
    std::swap(request_, other.request_);
    return *this;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  /// Waits for a call under way: nobody else knows when the buffers are free again.
  ~Request() {
    (void)hips_wait(&request_);
    (void)hips_request_free(&request_);
  }

  /// Starts a persistent call once more. kInvalidArgument: it is under way, or not persistent.
  void start() { throw_if_failed(hips_start(request_)); }
  /// True where the call has ended, or where there is none. Waits for no peer, but with several threads on
  /// one communicator for its turn: while another one moves messages, some milliseconds at most.
  bool test() {
    int done = 0;
    throw_if_failed(hips_test(&request_, &done));
    return done != 0;
  }
  /// Blocks until the call has ended.
  void wait() { throw_if_failed(hips_wait(&request_)); }

 private:
  friend class Communicator;
  explicit Request(hips_request_t request) : request_(request) {}

  hips_request_t request_ = nullptr;
};

}  // namespace hips
