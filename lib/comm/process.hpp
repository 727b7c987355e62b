#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/wait_policy.hpp"
#include "lib/comm/control/control.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/exec/engine.hpp"
#include "lib/node/node_segment.hpp"

namespace hips::comm {

/// The engine of this process and its transports. Communicators share it; the last one destroys it.
struct ProcessEngine {
  explicit ProcessEngine(const exec::Engine::Options& options) : engine(options), waits(options.waits) {}
  exec::Engine engine;
  std::shared_ptr<WaitPolicy> waits;  ///< of all waits of the process
  /// By name, then by rail; rails beyond the end wrap around.
  std::map<std::string_view, std::vector<transport::Transport*>> transports;
};

/// Describes this process to its peers. Constant after the first call; `control` is empty.
const ProcessInfo& this_process();

/// Returns the control plane of this process. The first call creates it, with its `dead_after_ns`. It lives until
/// exit, when it leaves all remaining communicators.
///
/// Errors   kSystem: the kernel provides no thread or eventfd. kMismatch: an earlier communicator of this process
///          has a different job token.
Result<Control*> process_control(const std::string& token, std::int64_t dead_after_ns);

struct EngineRequest {
  Clock* clock = nullptr;                  ///< null: SystemClock
  SpinLimits spin = SpinLimits::of(1, 1);  ///< given the processes of the node that were met here
  Rank rank = 0, size = 1;                 ///< in the first communicator, for the trace; see set_job()
  std::string trace_dir;                   ///< "": no trace
};

/// This process's rank in its job, and the job's ranks: they name its trace. Before the first communicator, which may have only some
/// of them.
void set_job(Rank rank, Rank size);

/// The shared memory of this process. Communicators share it; the last one releases it.
///
/// Errors   those of node::NodeSegment::create().
Result<std::shared_ptr<node::NodeSegment>> node_segment();

/// How long a process may spin, given the other processes on its node.
SpinLimits spin_limits(const std::vector<ProcessInfo>& processes, const ProcessInfo& self);
/// How long each of some processes of one node may spin, given those; `members` are their places in `processes`.
SpinLimits spin_limits(const std::vector<ProcessInfo>& processes, std::span<const Rank> members);

/// Returns the existing engine, or creates one as requested.
Result<std::shared_ptr<ProcessEngine>> process_engine(const EngineRequest& request);

/// Where this process's events go; null: nowhere, or it has no engine yet.
TraceSink* process_trace();

/// Returns the engine's transports with that name, by rail. The first call creates them.
Result<std::vector<transport::Transport*>> transports_of(ProcessEngine& engine, std::string_view name,
                                                         const Config& config);

}  // namespace hips::comm
