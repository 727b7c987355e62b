#include "lib/comm/setup/team_maker.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/setup/transport_registry.hpp"
#include "lib/plan/steps/peer_link.hpp"

namespace hips::comm {

using log::Subsystem;

namespace {

/// The transport of each rail of a topology. A transport without NICs has one port for all rails.
struct Rails {
  std::vector<transport::Transport*> transports;
  std::size_t num_ports = 1;  ///< as many as every rank has
  bool is_placed = false;     ///< TeamOrder::nics tells the ports
};

/// The port of a rail at a rank.
std::uint32_t port_of(const TeamOrder& order, const Rails& rails, std::size_t rank, std::size_t rail) {
  return rails.is_placed ? (*order.nics)[rank][rail] : static_cast<std::uint32_t>(rail % rails.num_ports);
}

/// Assigns a transport to each rail of the topology.
Result<Rails> rails_of(ProcessEngine& engine, const TransportEntry& entry, const TeamOrder& order) {
  const Topology& topology = order.topology;
  auto made = transports_of(engine, entry.name, order.config);
  if (!made) return fail(made.error());
  Rails rails;
  rails.num_ports = made->size();
  rails.is_placed = order.nics != nullptr && !entry.nics(order.processes.front()).empty();
  if (!rails.is_placed) {
    for (const ProcessInfo& process : order.processes)
      if (const auto nics = entry.nics(process); !nics.empty())
        rails.num_ports = std::min(rails.num_ports, nics.size());
  }
  const std::size_t count = rails.num_ports;
  const auto wanted = static_cast<std::size_t>(std::max<Rail>(1, topology.num_rails));
  for (std::size_t rail = 0; rail < wanted; ++rail) {
    const std::uint32_t port = port_of(order, rails, static_cast<std::size_t>(order.rank), rail);
    if (port >= made->size())
      return fail(
          Code::kUnsupported,
          fmt::format("the NICs of this node have changed: rail {} is NIC {}, and the process opened {} "
                      "when it made its first communicator; start it again",
                      rail, port, made->size()));
    rails.transports.push_back((*made)[port]);
  }
  for (std::size_t level = 0; level < topology.levels.size(); ++level) {
    for (const Rail rail : topology.levels[level].rails) {
      const transport::Limits& port = rails.transports[static_cast<std::size_t>(rail) % wanted]->query();
      if (port.description.empty()) continue;
      log::info(Subsystem::kTransport, "level {}, rail {}: {}{}", level, rail, port.description,
                wanted > count && !rails.is_placed
                    ? fmt::format("; {} rails share {} port{}", wanted, count, count == 1 ? "" : "s")
                    : "");
    }
  }
  return rails;
}

}  // namespace

Result<MadeTeam> make_team(const TeamOrder& order) {
  const auto& processes = order.processes;
  const ProcessInfo& self = processes[static_cast<std::size_t>(order.rank)];
  const auto size = static_cast<Rank>(processes.size());
  auto engine = process_engine({.clock = order.clock,
                                .spin = spin_limits(processes, self),
                                .rank = order.rank,
                                .size = size,
                                .trace_dir = order.config.trace_dir});
  if (!engine) return fail(engine.error());
  MadeTeam made;
  made.engine = std::move(*engine);

  exec::Team::Config team;
  team.id = order.id;
  team.rank = order.rank;
  team.size = size;
  for (const Design::Choice& choice : order.choices) team.plans.push_back({choice.shape, choice.program});
  team.arrives_by_same_nic = plan::nics_lead_everywhere(order.topology);
  team.credits = order.config.credits.value_or(0);
  team.max_segment_bytes = order.config.segment_bytes.value_or(0);
  team.max_staging_bytes = order.config.staging_bytes;
  team.on_error = order.on_error;
  team.traced = order.traced;
  std::map<std::string_view, Rails> used;
  team.route_to = [&](Rank peer) -> Result<exec::Team::Route> {
    const auto r = static_cast<std::size_t>(peer);
    const TransportEntry* entry = transport_between(order.config.transport, self, processes[r]);
    if (!used.contains(entry->name)) {
      auto rails = rails_of(*made.engine, *entry, order);
      if (!rails) return fail(rails.error());
      used.emplace(entry->name, *std::move(rails));
    }
    const Rails& rails = used[entry->name];
    exec::Team::Route route;
    route.by_rail = rails.transports;
    for (std::size_t rail = 0; rail < rails.transports.size(); ++rail)
      route.by_peer_rail.push_back(made.engine->engine.peer_for(processes[r].uid.high, processes[r].uid.low,
                                                                port_of(order, rails, r, rail)));
    return route;
  };
  auto created = exec::Team::create(made.engine->engine, std::move(team));
  if (!created) return fail(created.error());
  made.team = std::move(*created);
  // Of all ranks, so that all describe the communicator alike.
  std::set<std::string_view> names;
  for (std::size_t r = 0; r < processes.size(); ++r)
    if (static_cast<Rank>(r) != order.rank)
      names.insert(transport_between(order.config.transport, self, processes[r])->name);
  made.transports.assign(names.begin(), names.end());
  return made;
}

std::string describe_choices(const std::vector<Design::Choice>& choices) {
  std::string text;
  for (const Design::Choice& choice : choices) {
    text += text.empty() ? "" : ", else ";
    text += choice.shape->description;
    if (choice.up_to_bytes != UINT64_MAX) text += fmt::format(" up to {} bytes", choice.up_to_bytes);
  }
  return text;
}

std::string describe_emulation(const Design& design, const std::vector<ProcessInfo>& processes) {
  std::set<std::string_view> nodes;
  for (const ProcessInfo& process : processes) nodes.insert(process.node_key);
  const auto num_servers = static_cast<std::size_t>(design.topology.num_servers());
  if (num_servers <= nodes.size()) return "not emulated";
  // Without a name or a stored plan every rank is a server of one switch, and nothing that somebody asked for is emulated.
  const bool is_default =
      !design.topology_named && design.topology.spec == fmt::format("switch:{}", processes.size());
  return fmt::format(
      "{} on {} node{}",
      is_default ? fmt::format("{} ranks", num_servers) : fmt::format("emulated: {} servers", num_servers),
      nodes.size(), nodes.size() == 1 ? "" : "s");
}

}  // namespace hips::comm
