#include "topology/families/grid.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hips::topology {

Result<Topology> make_grid(const Spec& spec, std::string_view keyword, std::string_view name,
                           LevelKind kind) {
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
    level.kind = kind;
    level.rails = {topology.num_rails, topology.num_rails + 1};
    topology.num_rails += 2;
    topology.num_links += *servers / level.radix * (kind == LevelKind::kRing ? level.radix : level.radix - 1);
    topology.levels.push_back(std::move(level));
  }
  topology.spec = fmt::format("{}:{}", keyword, fmt::join(*sides, "x"));
  topology.name = fmt::format("{}({})", name, fmt::join(*sides, "x"));
  return topology;
}

std::string grid_address(const Topology& /*topology*/, std::span<const std::int64_t> digits) {
  return fmt::format("({})", fmt::join(digits, ","));
}

std::string grid_switch_name(const Topology& /*topology*/, std::int64_t /*server*/, Rail /*rail*/) {
  return "";
}

void wire_grid(const Topology& topology, Graph& graph) {
  const std::int64_t servers = topology.num_servers();
  std::int64_t stride = 1;
  for (const Level& level : network_levels(topology)) {
    for (std::int64_t server = 0; server < servers; ++server) {
      const bool last = server / stride % level.radix == level.radix - 1;
      if (last && level.kind == LevelKind::kLine) continue;
      const std::int64_t next = server + (last ? stride - stride * level.radix : stride);
      add_link(graph, level, server, level.rails[0], next, level.rails[1]);
    }
    stride *= level.radix;
  }
}

}  // namespace hips::topology
