#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/family.hpp"

// A mesh (grid) of any number of dimensions: a torus without the cables that close its rings. No switches.
// NIC 2i of a server is its "+" port in dimension i, NIC 2i+1 its "-" port; those at the rims lead nowhere.
//
//   (0) +]---[- (1) +]---[- (2)

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
    level.kind = LevelKind::kLine;
    level.rails = {topology.num_rails, topology.num_rails + 1};
    topology.num_rails += 2;
    topology.num_links += *servers / level.radix * (level.radix - 1);
    topology.levels.push_back(std::move(level));
  }
  topology.spec = fmt::format("mesh:{}", fmt::join(*sides, "x"));
  topology.name = fmt::format("Mesh({})", fmt::join(*sides, "x"));
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
      if (server / stride % level.radix == level.radix - 1) continue;
      add_link(graph, level, server, level.rails[0], server + stride, level.rails[1]);
    }
    stride *= level.radix;
  }
}

}  // namespace

const FamilyEntry kMeshFamily = {
    .family = Family::kMesh,
    .keyword = "mesh",
    .usage = "mesh:AxBxC (such as mesh:4x4, a torus without wrap)",
    .example = "mesh:3x5",
    .make = make,
    .address = address,
    .switch_name = switch_name,
    .wire = wire,
};

}  // namespace hips::topology
