#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/trace.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/wait_options.hpp"
#include "lib/base/wait/wait_policy.hpp"
#include "transports/transport.hpp"

namespace hips::exec {

class Waitable;
class EngineClient;
class Team;
struct EngineImpl;

/// The progress engine of a process. It owns the transports, endpoints and receive slots, and it is the only
/// place that waits.
///
/// Teams share the engine's endpoints, so a thousand communicators cost no additional queue pairs.
///
/// Threads  any number may start operations and wait. One at a time drives progress (the progress owner); the
///          others wake when their operation is done or when no thread drives progress.
class Engine {
 public:
  struct Options {
    Clock* clock = nullptr;      ///< null: SystemClock
    TraceSink* trace = nullptr;  ///< null: no trace
    /// How its waits learn, shared with other waiters of the process. Null: as if each process had a core.
    std::shared_ptr<WaitPolicy> waits{};
  };

  explicit Engine(Options options);
  /// kSystem if the engine cannot be woken, because the process has no descriptor left. Do not use it then.
  [[nodiscard]] Status status() const;
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Adds a transport, which lives as long as the engine; all teams must be gone before. Returns the pointer
  /// that Team::Route names it by.
  transport::Transport* add_transport(std::unique_ptr<transport::Transport> transport);

  /// The engine's index for one port of a process. The 128-bit identity of the process is unique in the job.
  transport::PeerId peer_for(std::uint64_t uid_high, std::uint64_t uid_low, std::uint32_t port);

  /// One round: polls the transports and advances every operation as far as possible. True if there was
  /// progress.
  bool progress();

  /// Calls progress(), unless another thread is driving progress.
  void try_progress();

  /// Runs `visit` while no thread makes progress. Returns false, without running it, if another thread is
  /// driving progress.
  bool while_still(const std::function<void()>& visit);

  /// Starts to advance `client` along with operations, until it is no longer busy. Any thread.
  void activate(EngineClient& client);
  /// Stops advancing the client. Call it before the client is destroyed.
  void remove(EngineClient& client);

  /// Drives progress until `awaited` (usually an operation) is done or the deadline passes. After kTimeout
  /// the operation continues.
  Status wait(Waitable& awaited, const WaitOptions& options = {});

  /// Wakes the thread that sleeps in wait(). Any thread, also a control thread.
  void wake();

  [[nodiscard]] Clock& clock() const;
  [[nodiscard]] TraceSink* trace() const;

 private:
  friend class Team;
  std::unique_ptr<EngineImpl> impl_;
};

}  // namespace hips::exec
