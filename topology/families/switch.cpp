#include <fmt/format.h>

#include "topology/families/family.hpp"

// All servers on one switch, by one NIC each: the model of an unknown fabric.

namespace hips::topology {

namespace {

Result<Topology> make_switch(const Spec& spec) {
  const auto servers = read_number(spec.text, "the number of servers", spec.args, 1, kMaxRanks);
  if (!servers) return fail(servers.error());

  Topology topology;
  topology.num_rails = 1;
  topology.num_switches = 1;
  topology.num_links = *servers;
  if (*servers > 1) {
    Level level;
    level.name = "switch";
    level.radix = *servers;
    level.kind = LevelKind::kSwitch;
    level.rails = {0};
    topology.levels.push_back(std::move(level));
  }
  topology.spec = fmt::format("switch:{}", *servers);
  topology.name = fmt::format("Switch({})", *servers);
  return topology;
}

std::string switch_name_of_switch(const Topology& /*topology*/, std::int64_t /*server*/, Rail /*rail*/) {
  return "switch";
}

void wire_switch(const Topology& topology, Graph& graph) {
  Level single;
  single.bandwidth_bytes_per_s = kDefaultBandwidthBytesPerS;
  single.latency_ns = kDefaultLatencyNs;
  const auto levels = network_levels(topology);
  const Level& level = levels.empty() ? single : levels.front();
  const std::int64_t node = add_switch(topology, graph, switch_name_of_switch(topology, 0, 0));
  for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
    add_link(graph, level, server, 0, node, kNoRail);
  }
}

}  // namespace

const FamilyEntry kSwitchFamily = {
    .family = Family::kSwitch,
    .keyword = "switch",
    .usage = "switch:servers (such as switch:8)",
    .example = "switch:8",
    .make = make_switch,
    .address = digit_address,
    .switch_name = switch_name_of_switch,
    .wire = wire_switch,
};

}  // namespace hips::topology
