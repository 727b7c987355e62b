#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/idle.hpp"
#include "lib/comm/control/control.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/exec/engine.hpp"

namespace hips::comm {

/// The engine of this process with its transports by name. Communicators share it; it ends with the last.
struct ProcessEngine {
  explicit ProcessEngine(const exec::Engine::Options& options) : engine(options) {}
  exec::Engine engine;
  /// By name, then by rail; rails beyond the end start over.
  std::map<std::string_view, std::vector<transport::Transport*>> transports;
};

/// What this process is to its peers. The same from the first call to the end; `control` is empty.
const ProcessInfo& this_process();

/// The control plane of this process, made by the first call and alive until exit, where it says goodbye for
/// every communicator that is still there.
///
/// Errors   kSystem: the kernel refuses a thread or an eventfd. kMismatch: an earlier communicator of this
///          process has another job token. `dead_after_ns` is that of the first call.
Result<Control*> process_control(const std::string& token, std::int64_t dead_after_ns);

struct EngineRequest {
  Clock* clock = nullptr;                  ///< null: SystemClock
  IdleLimits idle = IdleLimits::of(1, 1);  ///< of the first communicator
  Rank rank = 0, size = 1;                 ///< of the first communicator, for the trace
  std::string trace_dir;                   ///< "": no trace
};

/// How long a process may stay awake beside the others of its host.
IdleLimits idle_limits(const std::vector<ProcessInfo>& processes, const ProcessInfo& self);

/// The engine that is there, or a new one as `request` says.
Result<std::shared_ptr<ProcessEngine>> process_engine(const EngineRequest& request);

/// The engine's transports of that name by rail, made when first asked for.
Result<std::vector<transport::Transport*>> transports_of(ProcessEngine& engine, std::string_view name,
                                                         const Config& config);

}  // namespace hips::comm
