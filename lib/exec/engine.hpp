#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/trace.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/idle.hpp"
#include "lib/base/wait/wait_options.hpp"
#include "transports/transport.hpp"

namespace hips::exec {

class Awaited;
class Companion;
class Team;
struct EngineImpl;

/// The progress engine of a process: transports, endpoints, receive slots, and the only place that waits.
///
/// Endpoints belong to the engine and teams share them, so a thousand communicators cost no queue pairs.
///
/// Threads  any number may start operations and wait; one at a time drives progress, the others are woken
///          when their operation is done or when nobody drives.
class Engine {
 public:
  struct Options {
    Clock* clock = nullptr;      ///< null: SystemClock
    TraceSink* trace = nullptr;  ///< null: no trace
    IdleLimits idle = IdleLimits::of(1, 1);
  };

  explicit Engine(Options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Adds a transport; it must outlive no team. Returns it for naming in Team::Route.
  transport::Transport* add_transport(std::unique_ptr<transport::Transport> transport);

  /// The engine's index for a port of a process that is named by a 128-bit identity, unique in the job.
  transport::PeerId peer_for(std::uint64_t uid_high, std::uint64_t uid_low, std::uint32_t port);

  /// One round: polls transports, moves every operation as far as it gets. True when anything moved.
  bool progress();

  /// The same, unless another thread drives progress just now.
  void try_progress();

  /// Runs `visit` while nothing moves; false, without running it, where another thread drives progress just
  /// now.
  bool while_still(const std::function<void()>& visit);

  /// Has `companion` moved by whoever drives progress, as long as it is busy. Any thread.
  void enlist(Companion& companion);
  /// From here on nobody moves it; before its end.
  void dismiss(Companion& companion);

  /// Drives progress until `awaited`, an operation as a rule, is done or the deadline passes (kTimeout; it
  /// goes on).
  Status wait(Awaited& awaited, const WaitOptions& options = {});

  /// Wakes a sleeper. Any thread, also a control thread.
  void wake();

  [[nodiscard]] Clock& clock() const;
  [[nodiscard]] TraceSink* trace() const;

 private:
  friend class Team;
  std::unique_ptr<EngineImpl> impl_;
};

}  // namespace hips::exec
