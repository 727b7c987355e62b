#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hips/status.hpp>
#include <hips/topology.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/comm/calls/call_args.hpp"
#include "lib/comm/calls/pending_call.hpp"
#include "lib/comm/control/failure_detector.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/process_info.hpp"

namespace hips::comm {

class Communicator;
struct Design;

/// Executes the calls of one communicator: in shared memory, by a plan, by both, or for a single rank. The communicator checks
/// arguments, records calls, waits for them and acts on failures.
///
/// Threads  run() and advance() one at a time. refuse(), make_call() and what failure_actions() returned may run at the same time.
class Backend {
 public:
  /// What a backend knows of its communicator.
  struct Context {
    std::shared_ptr<const Config> config{};
    Clock* clock = nullptr;  ///< null: the system clock
    Rank rank = -1;
    Rank size = 0;
    std::function<void(const Status&)> on_error{};  ///< is told of what fails on this rank; any thread
  };

  explicit Backend(Context context) : context_(std::move(context)) {}
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  /// "HiPS on BCube(3,1), 2 lanes, mesh; shm; emulated: ..."
  [[nodiscard]] const std::string& description() const { return description_; }
  /// As one word: "memory" that all ranks share, "shm", "shm,verbs".
  [[nodiscard]] const std::string& name() const { return name_; }

  // Set-up, in this order. The results of all ranks are the arguments of the next step.
  virtual Result<Outbound> make(const Design& design, const std::vector<ProcessInfo>& processes,
                                std::uint64_t id) = 0;
  /// The functions that the failure detector calls, after make() or derive() and until the communicator has left.
  virtual FailureActions failure_actions() = 0;
  virtual Result<Outbound> allocate(const Inbound& offers) = 0;
  virtual Status connect(const Inbound& addresses) = 0;

  /// Whether derive() can be called. The same on all ranks.
  [[nodiscard]] virtual bool derives() const { return false; }
  /// Makes the backend of a communicator of the ranks `members` of this one, which needs no set-up. Local.
  virtual Result<std::unique_ptr<Backend>> derive(std::span<const Rank> /*members*/, std::uint64_t /*id*/,
                                                  Context /*context*/) {
    return fail(Code::kInternal, "this backend derives no others");
  }

  /// Returns why this backend does not support arguments that are valid as such. Called for elements of
  /// bytes_type() only. The same on all ranks.
  [[nodiscard]] virtual Status refuse(const CallArgs& /*args*/) const { return Status::success(); }
  /// Executes a call, and waits only through `caller`. A repeated call allocates nothing.
  virtual Status run(const CallArgs& args, Communicator& caller) = 0;
  /// Creates a call, which this backend outlives.
  virtual std::unique_ptr<PendingCall> make_call() = 0;
  /// Makes progress on all outstanding calls without waiting.
  virtual void advance() = 0;
  /// The clock of deadlines.
  [[nodiscard]] virtual Clock& clock() const = 0;

 protected:
  [[nodiscard]] const Config& config() const { return *context_.config; }
  [[nodiscard]] Rank rank() const { return context_.rank; }
  [[nodiscard]] Rank size() const { return context_.size; }

  Context context_;
  std::string description_, name_;  ///< set by make(), derive() or the constructor
};

}  // namespace hips::comm
