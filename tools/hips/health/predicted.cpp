#include "tools/hips/health/predicted.hpp"

#include <algorithm>
#include <utility>

#include "lib/cost/estimate.hpp"
#include "lib/cost/select.hpp"
#include "topology/formats/parse.hpp"
#include "topology/graph_wiring.hpp"
#include "topology/health/cabling_of.hpp"
#include "topology/wiring/recognise.hpp"

namespace hips::health {
namespace {

constexpr std::int64_t kMostServers = 2048;
/// Whose programs are all counted, where cables differ.
constexpr std::int64_t kMostCounted = 1024;

Topology between_servers(const Topology& topology) {
  return topology.ranks_per_server > 1 ? topology::without_node_level(topology) : topology;
}

/// For which it is worth to recognise the topology once more.
constexpr std::size_t kMostRecognised = 4096;
constexpr std::size_t kMostSlow = 3;
/// What a cable costs at least to be named: less is within the error of the model.
constexpr double kWorthNaming = 1.02;

std::optional<Topology> recognised(topology::Cabling cabling) {
  auto cluster = topology::topology_of("", std::move(cabling));
  if (!cluster) return std::nullopt;
  return std::move(cluster->topology);
}

/// The topology with one cable at another rate; cables are numbered as in Topology::graph().
std::optional<Topology> with_rate(const Topology& topology, std::size_t cable, double bytes_per_s) {
  if (topology.wiring.value != nullptr) {
    Graph graph = topology.wiring.value->graph;
    graph.links[cable].bandwidth_bytes_per_s = bytes_per_s;
    auto changed = topology::make_graph_topology(std::move(graph));
    if (!changed) return std::nullopt;
    changed->relay_off = topology.relay_off;
    return *std::move(changed);
  }
  const Graph graph = topology.graph();
  const GraphLink& link = graph.links[cable];
  const auto name = [&](std::int64_t node) { return graph.nodes[static_cast<std::size_t>(node)].name; };
  Topology changed = topology;
  for (LinkOverride& one : changed.overrides) {
    const bool here = one.server >= 0 ? (one.server == link.a && one.rail == link.a_port) ||
                                            (one.server == link.b && one.rail == link.b_port)
                                      : one.lower == name(link.a) && one.upper == name(link.b);
    if (here) one.bandwidth_bytes_per_s = bytes_per_s;
  }
  return changed;
}

/// Are the cables others than those of Topology::graph()?
bool has_own_cables(const topology::TopologyFile& file) {
  return file.cabling.value != nullptr || !file.told.empty();
}

std::optional<Topology> with_usual_rate(const topology::TopologyFile& file, const topology::Cabling& cabling,
                                        const topology::OddCable& odd) {
  if (!has_own_cables(file))
    return with_rate(between_servers(file.topology), odd.cable, odd.usual_bytes_per_s);
  topology::Cabling changed = cabling;
  changed.cables[odd.cable].bandwidth_bytes_per_s = odd.usual_bytes_per_s;
  return recognised(std::move(changed));
}

void predict_leaf(const topology::Cabling& cabling, const topology::Health& health, Times& times) {
  std::size_t leaves = 0;
  for (const topology::SwitchLoad& load : health.loads) {
    if (health.tiers.of[load.node] != 1) continue;
    ++leaves;
    if (load.servers <= times.leaf_servers) continue;
    times.leaf_node = load.node;
    times.leaf_servers = load.servers;
  }
  if (leaves < 2 || times.leaf_servers < 2) return;
  if (health.tiers.highest < 2 && !health.tiers.has_more) return;
  const auto leaf = recognised(topology::cabling_of_leaf(cabling, times.leaf_node));
  if (leaf) times.leaf = predicted_seconds(*leaf);
}

}  // namespace

std::optional<double> predicted_seconds(const Topology& topology) {
  const Topology between = between_servers(topology);
  if (between.num_servers() < 2 || between.num_servers() > kMostServers) return std::nullopt;
  const auto candidates = cost::candidates(between);
  if (!candidates) return std::nullopt;
  const cost::Candidate& best =
      (*candidates)[cost::choose(between, cost::Medium::kWires, *candidates, kBytes)];
  const double seconds = cost::expected_seconds(between, cost::Medium::kWires, best, kBytes);
  const bool is_even = between.overrides.empty() && between.wiring.value == nullptr;
  if (is_even || between.num_servers() > kMostCounted) return seconds;
  // The candidate has the programs of one server, which may not be the one at the slow cable.
  constexpr std::int64_t kElementBytes = 4;
  const cost::Cost all = cost::estimate_all(
      between, *best.builder,
      {.count = static_cast<std::int64_t>(kBytes) / kElementBytes, .element_bytes = kElementBytes},
      cost::BoundUse::kLeftOut);
  return std::max(seconds,
                  cost::expected_seconds(cost::Medium::kWires, {.latency_seconds = all.latency_seconds,
                                                                .bandwidth_seconds = all.bandwidth_seconds,
                                                                .num_messages = best.num_messages,
                                                                .has_incast = best.has_incast}));
}

Times predict(const topology::TopologyFile& file, const topology::Cabling& cabling,
              const topology::Health& health) {
  Times times;
  times.all = predicted_seconds(file.topology);
  if (!times.all) return times;
  predict_leaf(cabling, health, times);
  if (has_own_cables(file) && cabling.cables.size() > kMostRecognised) return times;
  // The slowest first, compared with their like.
  std::vector<topology::OddCable> slow;
  const auto rate = [&](const topology::OddCable& odd) {
    return cabling.cables[odd.cable].bandwidth_bytes_per_s / odd.usual_bytes_per_s;
  };
  for (const topology::OddCable& odd : health.odd)
    if (cabling.cables[odd.cable].up && rate(odd) < 1) slow.push_back(odd);
  std::ranges::stable_sort(slow, {}, rate);
  if (slow.size() > kMostSlow) slow.resize(kMostSlow);
  for (const topology::OddCable& odd : slow) {
    const auto topology = with_usual_rate(file, cabling, odd);
    const auto seconds = topology ? predicted_seconds(*topology) : std::nullopt;
    if (seconds && *seconds * kWorthNaming < *times.all)
      times.slow.push_back({odd.cable, odd.usual_bytes_per_s, *seconds});
  }
  return times;
}

}  // namespace hips::health
