#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/base/wait/clock.hpp"

namespace hips::comm {

/// Options of Communicator::create(). An empty value means: from the environment, else the default.
struct CommunicatorOptions {
  std::optional<std::string> topology{};   ///< "bcube:3,1"; default: one switch that connects all ranks
  std::optional<std::string> algorithm{};  ///< default: chosen by size
  std::optional<std::string> pattern{};    ///< "mesh,ring"; default: by size on switches, ring on cables
  std::string name = "communicator";       ///< in logs and errors
  ThreadMode thread_mode = ThreadMode::kSerialized;
  /// Time of waits, deadlines and traces; null: SystemClock. Taken from the first communicator of a process.
  Clock* clock = nullptr;
  /// As hips_bootstrap_t::progress: called about every millisecond, on the waiting thread, while a call
  /// waits. Empty: the bootstrap's.
  std::function<void()> progress{};
  /// While true: about every 20 us, for peers that wait for the caller's runtime. Null: false.
  const std::atomic<bool>* often = nullptr;
  /// Lets a progress thread make progress on non-blocking calls, unless HIPS_PROGRESS_THREAD says otherwise:
  /// for callers that may wait elsewhere while peers wait for those calls.
  bool progress_thread = false;
  /// The communicator has only some of the job's ranks. Variables that name a topology, a pattern for each level
  /// or a stored plan then do not apply.
  bool is_part = false;
  std::optional<std::int64_t> timeout_ns{};  ///< longest time that a call may wait; default: HIPS_TIMEOUT
  /// Why this rank cannot take part, if not ok: the error of all ranks, with Scope::kCommunicator.
  Status refused{};
  /// Between nodes, a communicator of the same ranks that all have destroyed may be used again (SpareCommunicators). The same on
  /// all ranks.
  bool may_reuse = false;
};

}  // namespace hips::comm
