#include <fmt/format.h>

#include "topology/families/family.hpp"

// A rail-optimised rack: NIC j of every server leads to switch j, which joins that rail and nothing else.

namespace hips::topology {

namespace {

Result<Topology> make_rail(const Spec& spec) {
  const auto parts = split(spec.args, ',');
  if (parts.size() != 2) {
    return bad_spec(spec.text, fmt::format("{} number{} \"rail:\" instead of two; write {}", parts.size(),
                                           parts.size() == 1 ? " follows" : "s follow", spec.usage));
  }
  const auto servers = read_number(spec.text, "the number of servers", parts[0], 1, kMaxRanks);
  if (!servers) return fail(servers.error());
  const auto rails = read_number(spec.text, "the number of rails", parts[1], 1, kMaxRails);
  if (!rails) return fail(rails.error());

  Topology topology;
  topology.num_rails = static_cast<Rail>(*rails);
  topology.num_switches = *rails;
  topology.num_links = *servers * *rails;
  if (*servers > 1) {
    Level level;
    level.name = "rack";
    level.radix = *servers;
    level.kind = LevelKind::kSwitch;
    for (Rail rail = 0; rail < topology.num_rails; ++rail) level.rails.push_back(rail);
    topology.levels.push_back(std::move(level));
  }
  topology.spec = fmt::format("rail:{},{}", *servers, *rails);
  topology.name = fmt::format("Rail({},{})", *servers, *rails);
  return topology;
}

std::string rail_switch_name(const Topology& /*topology*/, std::int64_t /*server*/, Rail rail) {
  return fmt::format("rail {} switch", rail);
}

void wire_rail(const Topology& topology, Graph& graph) {
  // A single server has no level, but its cables have the default rate.
  Level single;
  single.bandwidth_bytes_per_s = kDefaultBandwidthBytesPerS;
  single.latency_ns = kDefaultLatencyNs;
  const auto levels = network_levels(topology);
  const Level& level = levels.empty() ? single : levels.front();
  for (Rail rail = 0; rail < topology.num_rails; ++rail) {
    const std::int64_t node = add_switch(topology, graph, rail_switch_name(topology, 0, rail));
    for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
      add_link(graph, level, server, rail, node, kNoRail);
    }
  }
}

}  // namespace

const FamilyEntry kRailFamily = {
    .family = Family::kRail,
    .keyword = "rail",
    .usage = "rail:servers,rails (such as rail:9,2)",
    .example = "rail:9,2",
    .make = make_rail,
    .address = digit_address,
    .switch_name = rail_switch_name,
    .wire = wire_rail,
};

}  // namespace hips::topology
