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

/// A call as its carrier sees it, to be started once or many times.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  /// The arguments of the next start(), of which check_arguments() thinks well; their sections live until the
  /// call has ended. Decides what depends on them, so that start() need not. Local; fails on all ranks alike,
  /// but for a lack of memory.
  virtual Status set(const CallArgs& args) = 0;
  virtual void start() = 0;
  /// Moves it on without waiting; how it ended, once it has.
  virtual std::optional<Status> test() = 0;
  [[nodiscard]] virtual bool done() const = 0;
  /// Moves it to its end, whose status it gives, or to the deadline: kTimeout, and the call goes on.
  virtual Status wait(const WaitOptions& options) = 0;
  /// Runs `visit`, in which the next two may be asked, while nothing moves the call; not at all where another
  /// thread moves it just now. Not from inside wait(), where they may be asked as they are.
  virtual void while_still(const std::function<void()>& visit) { visit(); }
  /// Ranks that it lacks right now, ascending, and that in words.
  [[nodiscard]] virtual std::vector<Rank> waiting_for() const = 0;
  [[nodiscard]] virtual std::string waiting_text() const = 0;
};

}  // namespace hips::comm
