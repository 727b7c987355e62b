#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/base/wait/wait_options.hpp"
#include "lib/comm/calls/call_args.hpp"

namespace hips::comm {

/// A call of one backend. It can be started any number of times, one start after the other.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  /// Sets the arguments of the next start() and prepares everything that depends on them. The caller has
  /// checked them with check_arguments(); their sections live until the call is complete. Local. Fails on all
  /// ranks or on none, except when memory runs out.
  virtual Status set(const CallArgs& args) = 0;
  virtual void start() = 0;
  /// Makes progress without waiting. Returns the status once the call is complete.
  virtual std::optional<Status> test() = 0;
  [[nodiscard]] virtual bool done() const = 0;
  /// Waits until the call is complete and returns its status. At the deadline it returns kTimeout, and the
  /// call stays outstanding.
  virtual Status wait(const WaitOptions& options) = 0;
  /// Runs `visit` while no thread makes progress, so that it may use the next two functions. Does nothing if
  /// another thread makes progress right now.
  virtual void while_still(const std::function<void()>& visit) { visit(); }
  /// The missing ranks, ascending, and a text that names them.
  [[nodiscard]] virtual std::vector<Rank> waiting_for() const = 0;
  [[nodiscard]] virtual std::string waiting_text() const = 0;
};

}  // namespace hips::comm
