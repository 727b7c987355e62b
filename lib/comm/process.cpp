#include "lib/comm/process.hpp"

#include <pthread.h>

#include <bit>
#include <cstdlib>
#include <mutex>

#include <fmt/format.h>

#include "lib/base/chrome_trace.hpp"
#include "lib/base/log.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/setup/transport_registry.hpp"

namespace hips::comm {
namespace {

/// Never destroyed, because threads and exit handlers may still use it. at_exit() shuts down what it must.
struct ProcessState {
  std::mutex mutex;
  std::unique_ptr<Control> control;
  std::string token;
  std::weak_ptr<ProcessEngine> engine;
  std::weak_ptr<node::NodeSegment> segment;
  std::shared_ptr<WaitPolicy> waits;  ///< outlives engines: what it has learned is of the node
  std::unique_ptr<TraceSink> trace;   ///< outlives engines: a second one continues the same file
  bool has_no_trace = false;          ///< its file could not be made
  Rank job_rank = 0, job_size = 0;    ///< 0: not known
};

ProcessState& state() {
  static ProcessState* const instance = new ProcessState;
  return *instance;
}

/// Registered by the first use of the control plane. It also runs when the library is unloaded, because the
/// control thread must not outlive its code.
void at_exit() {
  if (in_forked_child()) return;
  ProcessState& s = state();
  if (s.control) s.control->shutdown();
  const std::lock_guard lock(s.mutex);
  if (s.engine.expired()) {
    s.trace.reset();
  } else if (s.trace) {
    s.trace->flush();  // communicators that were not destroyed may still record
  }
}

}  // namespace

const ProcessInfo& this_process() {
  static const ProcessInfo* const info = [] {
    guard_against_fork();
    return new ProcessInfo(ProcessInfo::self());
  }();
  return *info;
}

Result<Control*> process_control(const std::string& token, std::int64_t dead_after_ns) {
  ProcessState& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.control) {
    if (s.token != token)
      return fail(Code::kMismatch,
                  "HIPS_JOB_TOKEN changed after this process created its first communicator; keep one value");
    return s.control.get();
  }
  auto control = Control::create({.self = this_process(), .token = token, .dead_after_ns = dead_after_ns});
  if (!control) return fail(control.error());
  s.control = std::move(*control);
  s.token = token;
  pthread_atfork([] { state().control->before_fork(); }, [] { state().control->after_fork_in_parent(); },
                 [] { state().control->after_fork_in_child(); });
  std::atexit(at_exit);
  return s.control.get();
}

SpinLimits spin_limits(const std::vector<ProcessInfo>& processes, const ProcessInfo& self) {
  std::vector<Rank> members;
  for (std::size_t i = 0; i < processes.size(); ++i)
    if (processes[i].node_key == self.node_key) members.push_back(static_cast<Rank>(i));
  return spin_limits(processes, members);
}

SpinLimits spin_limits(const std::vector<ProcessInfo>& processes, std::span<const Rank> members) {
  // Launchers may bind each rank to its own core, so count the cores that all ranks of the node may use.
  std::vector<std::uint64_t> cores;
  for (const Rank member : members) {
    const auto& own = processes[static_cast<std::size_t>(member)].cores;
    cores.resize(std::max(cores.size(), own.size()));
    for (std::size_t i = 0; i < own.size(); ++i) cores[i] |= own[i];
  }
  int num_cores = 0;
  for (const std::uint64_t word : cores) num_cores += std::popcount(word);
  return SpinLimits::of(static_cast<int>(members.size()), std::max(1, num_cores));
}

void set_job(Rank rank, Rank size) {
  ProcessState& s = state();
  const std::lock_guard lock(s.mutex);
  s.job_rank = rank;
  s.job_size = size;
}

Result<std::shared_ptr<ProcessEngine>> process_engine(const EngineRequest& request) {
  ProcessState& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.waits) s.waits = std::make_shared<WaitPolicy>(SpinLimits::of(1, 1));
  s.waits->limit(request.spin);
  if (auto engine = s.engine.lock()) return engine;
  if (!s.trace && !s.has_no_trace && !request.trace_dir.empty()) {
    const bool knows_job = s.job_size > 0;
    auto trace = make_chrome_trace({.directory = request.trace_dir,
                                    .rank = knows_job ? s.job_rank : request.rank,
                                    .num_ranks = knows_job ? s.job_size : request.size});
    if (trace) {
      s.trace = std::move(*trace);
    } else {
      // The job is worth more than its trace.
      s.has_no_trace = true;
      log::error(log::Subsystem::kComm, "{}; this process goes on without", trace.error().message);
    }
  }
  auto engine = std::make_shared<ProcessEngine>(
      exec::Engine::Options{.clock = request.clock, .trace = s.trace.get(), .waits = s.waits});
  if (Status status = engine->engine.status(); !status.ok()) return fail(std::move(status));
  s.engine = engine;
  return engine;
}

TraceSink* process_trace() {
  ProcessState& s = state();
  const std::lock_guard lock(s.mutex);
  return s.trace.get();
}

Result<std::shared_ptr<node::NodeSegment>> node_segment() {
  ProcessState& s = state();
  const std::lock_guard lock(s.mutex);
  if (auto segment = s.segment.lock()) return segment;
  auto made = node::NodeSegment::create();
  if (made) s.segment = *made;
  return made;
}

Result<std::vector<transport::Transport*>> transports_of(ProcessEngine& engine, std::string_view name,
                                                         const Config& config) {
  const std::lock_guard lock(state().mutex);
  if (const auto known = engine.transports.find(name); known != engine.transports.end()) return known->second;
  for (const TransportEntry& entry : transport_entries()) {
    if (entry.name != name) continue;
    auto made = entry.make(config);
    if (!made) return fail(made.error());
    std::vector<transport::Transport*> added, by_rail;
    for (auto& transport : made->transports)
      added.push_back(engine.engine.add_transport(std::move(transport)));
    for (const std::size_t index : made->by_rail) by_rail.push_back(added[index]);
    return engine.transports.emplace(entry.name, std::move(by_rail)).first->second;
  }
  return fail(Code::kInternal, fmt::format("unknown transport \"{}\"", name));
}

}  // namespace hips::comm
