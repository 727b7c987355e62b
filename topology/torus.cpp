#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/family.hpp"

// A torus of any number of dimensions, wrapped in each; no switches. NIC 2i of a server is its "+" port in
// dimension i, NIC 2i+1 its "-" port; a cable joins the "+" port of a server to the "-" port of the next.
//
//   ... -[- (0) +]---[- (1) +]---[- (2) +]- ...    and round again
//
// A side of 2 has two cables between the same two servers, which use different ports and both count.

namespace hips::topology {

namespace {

Result<Topology> make(const Spec& spec) {
  static constexpr std::array kNames = {"x", "y", "z", "w"};
  const auto sides = read_radices(spec, "side");
  if (!sides) return fail(sides.error());
  const auto servers = count_servers(spec.text, *sides);
  if (!servers) return fail(servers.error());

  Topology topology;
  topology.servers_relay = true;
  for (std::size_t d = 0; d < sides->size(); ++d) {
    Level level;
    level.name = sides->size() <= kNames.size() ? std::string(kNames[d]) : fmt::format("dimension {}", d);
    level.radix = (*sides)[d];
    level.kind = LevelKind::kRing;
    level.rails = {topology.num_rails, topology.num_rails + 1};
    topology.num_rails += 2;
    topology.num_links += *servers;
    topology.levels.push_back(std::move(level));
  }
  topology.spec = fmt::format("torus:{}", fmt::join(*sides, "x"));
  topology.name = fmt::format("Torus({})", fmt::join(*sides, "x"));
  return topology;
}

std::string address(const Topology& /*topology*/, std::span<const std::int64_t> digits) {
  return fmt::format("({})", fmt::join(digits, ","));
}

std::string switch_name(const Topology& /*topology*/, std::int64_t /*server*/, Rail /*rail*/) {
  return "";
}

void wire(const Topology& topology, Graph& graph) {
  const std::int64_t servers = topology.num_servers();
  std::int64_t stride = 1;
  for (const Level& level : network_levels(topology)) {
    for (std::int64_t server = 0; server < servers; ++server) {
      const bool last = server / stride % level.radix == level.radix - 1;
      const std::int64_t next = server + (last ? stride - stride * level.radix : stride);
      add_link(graph, level, server, level.rails[0], next, level.rails[1]);
    }
    stride *= level.radix;
  }
}

}  // namespace

const FamilyEntry kTorusFamily = {
    .family = Family::kTorus,
    .keyword = "torus",
    .usage = "torus:AxBxC (such as torus:4x4)",
    .example = "torus:4x4",
    .make = make,
    .address = address,
    .switch_name = switch_name,
    .wire = wire,
};

}  // namespace hips::topology
