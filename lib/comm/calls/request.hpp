#pragma once

#include <cstdint>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/comm/calls/call_args.hpp"

namespace hips::comm {

/// A non-blocking call (started when it is created) or a persistent one (started any number of times). It owns
/// its buffers from start() until it is complete.
///
/// The calls of a communicator are executed in the order of their start, which is the same on all ranks. They
/// make progress while this process is in test() or wait() of any request, or in a blocking call. While the
/// process computes, only the progress thread (HIPS_PROGRESS_THREAD) makes progress.
///
/// Threads  as the communicator's calls: one at a time.
class Request {
 public:
  virtual ~Request() = default;  ///< waits for an outstanding call
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// Replaces the arguments of a request that is not outstanding; cheaper than a new request.
  /// kInvalidArgument: as the call; the request is unchanged then.
  virtual Status renew(const CallArgs& args) = 0;
  /// Starts a persistent call again. kInvalidArgument: it is outstanding. Other errors are those of the
  /// blocking call, as far as they are known at the start; wait() returns the rest.
  virtual Status start() = 0;
  [[nodiscard]] virtual bool active() const = 0;
  /// True if test() would return true now. Makes no progress: for a caller with many requests that has just
  /// tested one of them.
  [[nodiscard]] virtual bool has_ended() = 0;
  /// Makes progress without waiting for peers. True if this call is complete or not started; wait() then
  /// returns its status.
  virtual bool test() = 0;
  /// Blocks until the call is complete and returns its status. Ok if no call is outstanding.
  virtual Status wait() = 0;
};

}  // namespace hips::comm
