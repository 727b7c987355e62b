#include "lib/comm/team_communicator.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/fork_guard.hpp"

namespace hips::comm {

using log::Subsystem;

namespace {

/// "recursive doubling up to 65536 bytes, else HiPS, mesh"
std::string describe_choices(const std::vector<Design::Choice>& choices) {
  std::string text;
  for (const Design::Choice& choice : choices) {
    text += text.empty() ? "" : ", else ";
    text += choice.shape->description;
    if (choice.up_to_bytes != UINT64_MAX) text += fmt::format(" up to {} bytes", choice.up_to_bytes);
  }
  return text;
}

}  // namespace

TeamCommunicator::~TeamCommunicator() {
  if (in_forked_child()) {
    // Everything here belongs to the parent: closing it would reach the peers.
    (void)team_.release();
    new std::shared_ptr<ProcessEngine>(std::move(engine_));
    return;
  }
  leave();
}

/// A transport for each rail of the topology. A rail is the same port number at both of its ends, so all
/// ranks count ports up to the number that every one of them has.
Result<TeamCommunicator::Rails> TeamCommunicator::rails_of(const TransportEntry& entry,
                                                           const Topology& topology,
                                                           const std::vector<ProcessInfo>& processes) {
  auto made = transports_of(*engine_, entry.name, config_);
  if (!made) return fail(made.error());
  std::size_t count = made->size();
  for (const ProcessInfo& process : processes) {
    if (const std::size_t rails = entry.rails(process); rails > 0) count = std::min(count, rails);
  }
  Rails rails;
  const auto wanted = static_cast<std::size_t>(std::max<Rail>(1, topology.num_rails));
  for (std::size_t rail = 0; rail < wanted; ++rail) {
    rails.transports.push_back((*made)[rail % count]);
    rails.ports.push_back(static_cast<std::uint32_t>(rail % count));
  }
  for (std::size_t level = 0; level < topology.levels.size(); ++level) {
    for (const Rail rail : topology.levels[level].rails) {
      const transport::Limits& port = rails.transports[static_cast<std::size_t>(rail) % wanted]->query();
      if (port.description.empty()) continue;
      log::info(Subsystem::kTransport, "level {}, rail {}: {}{}", level, rail, port.description,
                wanted > count
                    ? fmt::format("; {} rails share {} port{}", wanted, count, count == 1 ? "" : "s")
                    : "");
    }
  }
  return rails;
}

Result<Blob> TeamCommunicator::make(const Design& design, const std::vector<ProcessInfo>& processes,
                                    std::uint64_t id) {
  const ProcessInfo& self = processes[static_cast<std::size_t>(rank())];
  auto engine = process_engine({.clock = clock_,
                                .idle = idle_limits(processes, self),
                                .rank = rank(),
                                .size = size(),
                                .trace_dir = config_.trace_dir});
  if (!engine) return fail(engine.error());
  engine_ = std::move(*engine);

  auto choices = choose_plans(design, rank(), processes);
  if (!choices) return fail(choices.error());
  exec::Team::Config team;
  team.id = id;
  team.rank = rank();
  team.size = size();
  for (const Design::Choice& choice : *choices) {
    team.shapes.push_back(choice.shape);
    team.programs.push_back(choice.program);
  }
  team.credits = config_.credits.value_or(0);
  team.max_segment_bytes = config_.segment_bytes.value_or(0);
  team.max_staging_bytes = config_.staging_bytes;
  team.on_error = [watch = watch_.get()](const Status& status) { watch->found(status); };
  team.routes.resize(processes.size());
  std::map<std::string_view, Rails> used;
  for (std::size_t r = 0; r < processes.size(); ++r) {
    if (static_cast<Rank>(r) == rank()) continue;
    const TransportEntry* entry = transport_between(config_.transport, self, processes[r]);
    if (!used.contains(entry->name)) {
      auto rails = rails_of(*entry, design.topology, processes);
      if (!rails) return fail(rails.error());
      used.emplace(entry->name, *std::move(rails));
    }
    const Rails& rails = used[entry->name];
    team.routes[r].by_rail = rails.transports;
    for (const std::uint32_t port : rails.ports)
      team.routes[r].by_peer_rail.push_back(
          engine_->engine.peer_for(processes[r].uid.high, processes[r].uid.low, port));
  }
  auto made = exec::Team::create(engine_->engine, std::move(team));
  if (!made) return fail(made.error());
  team_ = std::move(*made);
  plans_.emplace(*choices, rank());

  std::set<std::string_view> hosts;
  for (const ProcessInfo& process : processes) hosts.insert(process.host_key);
  const auto num_servers = static_cast<std::size_t>(design.topology.num_servers());
  std::vector<std::string_view> names;
  for (const auto& [name, rails] : used) names.push_back(name);
  carrier_ = fmt::format("{}", fmt::join(names, ","));
  description_ = fmt::format(
      "{} on {}; {}; {}", describe_choices(*choices), design.topology.name, fmt::join(names, ", "),
      num_servers > hosts.size() ? fmt::format("emulated: {} servers on {} host{}", num_servers, hosts.size(),
                                               hosts.size() == 1 ? "" : "s")
                                 : "not emulated");
  return team_->offer();
}

Verdicts TeamCommunicator::verdicts() {
  return {.fail = [team = team_.get()](const Status& status) { team->fail(status); },
          .left = [team = team_.get()](Rank rank) { team->peer_left(rank); }};
}

Result<Blob> TeamCommunicator::allocate(const std::vector<Blob>& offers) {
  return team_->allocate(offers);
}

Status TeamCommunicator::connect(const std::vector<Blob>& addresses) {
  if (team_->departure_bytes() > 0)
    log::info(Subsystem::kTransport,
              "registered staging: {} KiB for arrivals, {} KiB for departures, segments of {} KiB",
              team_->staging_bytes() / 1024, team_->departure_bytes() / 1024, team_->segment_bytes() / 1024);
  return team_->connect(addresses);
}

TeamParts TeamCommunicator::parts() {
  return {.engine = engine_->engine,
          .team = *team_,
          .plans = *plans_,
          .buffers = buffers_,
          .rank = rank(),
          .size = size(),
          .by_rank = config_.reproducible == Reproducible::kAny};
}

Status TeamCommunicator::run(const CallArgs& args) {
  TeamCall call(parts());
  if (Status status = call.set(args); !status.ok()) return status;
  call.start();
  return wait(call);
}

std::unique_ptr<PendingCall> TeamCommunicator::make_call() {
  return std::make_unique<TeamCall>(parts());
}

void TeamCommunicator::advance() {
  engine_->engine.try_progress();
}

Clock& TeamCommunicator::clock() const {
  return engine_->engine.clock();
}

}  // namespace hips::comm
