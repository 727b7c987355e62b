#pragma once

#include <cstdint>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/comm/calls/call_args.hpp"

namespace hips::comm {

/// A non-blocking call (started when it is made) or a persistent one (started any number of times). While it
/// is under way its buffers belong to it.
///
/// Calls of a communicator take place in the order in which they were started, on all ranks alike. They move
/// whenever this process is in test() or wait(), of this request or another, or in a blocking call; while it
/// computes only the thread of HIPS_PROGRESS_THREAD does.
///
/// Threads  as the communicator's calls: one at a time.
class Request {
 public:
  virtual ~Request() = default;  ///< waits where the call is under way
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// Gives a request that is not under way other arguments: a new one without the price of making it.
  /// kInvalidArgument: as the call; nothing has changed then.
  virtual Status renew(const CallArgs& args) = 0;
  /// Starts a persistent call once more. kInvalidArgument: it is under way; else as the blocking call, but
  /// for what is found out later.
  virtual Status start() = 0;
  [[nodiscard]] virtual bool active() const = 0;
  /// Would test() be true now? Moves nothing: for whoever has many requests, and has just moved one of them.
  [[nodiscard]] virtual bool has_ended() = 0;
  /// Moves calls on, without waiting for peers. True where this one has ended or none is under way; wait()
  /// then has its status.
  virtual bool test() = 0;
  /// Blocks until it has ended; its status. Ok where none is under way.
  virtual Status wait() = 0;
};

}  // namespace hips::comm
