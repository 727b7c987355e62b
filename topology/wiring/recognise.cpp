#include "topology/wiring/recognise.hpp"

#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/formats/topology_file.hpp"
#include "topology/wiring/fit.hpp"
#include "topology/wiring/kinds.hpp"
#include "topology/wiring/layout.hpp"
#include "topology/wiring/management.hpp"
#include "topology/wiring/stay_graph.hpp"
#include "topology/wiring/told_by_wiring.hpp"
#include "topology/wiring/wiring.hpp"

namespace hips::topology {
namespace {

/// Of the families that fit, the one of which least is missing.
std::optional<FamilyFit> best_fit(std::string_view name, const ServerWiring& wiring) {
  std::optional<FamilyFit> best;
  for (const auto lay_out : {lay_out_rack, lay_out_tree, lay_out_bcube, search_bcube, lay_out_grid}) {
    for (const FamilyLayout& layout : lay_out(wiring)) {
      auto found = fit(name, wiring, layout);
      if (found && (!best || found->missing < best->missing)) best = std::move(found);
    }
    if (best && best->missing == 0) break;
  }
  return best;
}

/// Names the rate in the spec, or the file if no spec describes the topology.
Result<void> set_spec(std::string_view name, ClusterTopology& cluster) {
  TopologyFile file;
  file.topology = cluster.topology;
  file.server_names = cluster.nodes;
  auto spec = spec_with_rates(name, file);
  if (!spec) return fail(spec.error());
  cluster.topology.spec = *std::move(spec);
  return {};
}

/// Recognises the topology of cables whose ends are known to be servers or switches.
Result<ClusterTopology> recognise(std::string_view name, Cabling cabling) {
  // What joins servers only slowly may still be all that joins them.
  auto fast = without_management(name, cabling);
  auto wiring = fast ? wiring_of(name, *fast) : wiring_of(name, cabling);
  if (!wiring && fast) {
    fast.reset();
    wiring = wiring_of(name, cabling);
  }
  if (!wiring) return fail(wiring.error());
  if (fast) cabling = *std::move(fast);
  auto best = best_fit(name, *wiring);
  if (!best && wiring->num_left_out > 0) {
    // A switch of a family that lost all cables but one is a dead end, too.
    auto whole = wiring_of(name, std::move(cabling), DeadEnds::kKeep);
    if (whole) best = best_fit(name, *whole);
    if (best) wiring = std::move(whole);
  }
  auto cluster = best ? Result<ClusterTopology>(best->cluster) : stay_graph(name, *wiring);
  if (!cluster) return cluster;
  std::vector<std::int64_t> seen;
  if (best) {
    seen = std::move(best->seen);
  } else {
    // A graph has the nodes of the wiring.
    seen.resize(wiring->size());
    std::iota(seen.begin(), seen.end(), std::int64_t{0});
  }
  cluster->told = told_by(*wiring, cluster->topology, seen);
  if (auto set = set_spec(name, *cluster); !set) return fail(set.error());
  cluster->cabling.value = std::make_shared<const Cabling>(std::move(wiring->listed));
  return cluster;
}

bool is_of_a_family(const Result<ClusterTopology>& cluster) {
  return cluster && cluster->topology.family != Family::kGraph && cluster->topology.num_servers() > 1;
}

}  // namespace

Result<ClusterTopology> topology_of(std::string_view name, Cabling cabling) {
  if (tells_kinds(cabling)) {
    decide_kinds(name, cabling);
    return recognise(name, std::move(cabling));
  }
  Cabling decided = cabling;
  decide_kinds(name, decided);
  auto cluster = recognise(name, std::move(decided));
  if (is_of_a_family(cluster)) return cluster;
  // Servers of a mesh that have lost all cables but one seem to be those of switches.
  const std::string example = example_of_hosts(cabling);
  take_all_for_servers(name, cabling);
  auto of_servers = recognise(name, std::move(cabling));
  if (is_of_a_family(of_servers)) return of_servers;
  if (cluster) return cluster;
  return fail(
      cluster.error().code,
      fmt::format("{}; the file does not tell servers from switches: tell which are by --hosts REGEX or "
                  "--switches REGEX, such as {}",
                  cluster.error().message, example));
}

}  // namespace hips::topology
