#include "lib/plan/fabric/server_rings.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/pattern/grid_cycle.hpp"
#include "lib/plan/fabric/ring_search.hpp"
#include "topology/graph_wiring.hpp"

namespace hips::plan {
namespace {

/// The network levels as the digits of a server.
struct ServerGrid {
  std::vector<Level> levels;
  std::vector<std::int64_t> radices, stride;
  std::int64_t num_servers = 1;

  explicit ServerGrid(const Topology& topology) {
    for (const Level& level : topology.levels) {
      if (level.kind == LevelKind::kNode || level.radix == 1) continue;
      levels.push_back(level);
      radices.push_back(level.radix);
      stride.push_back(num_servers);
      num_servers *= level.radix;
    }
  }
  [[nodiscard]] std::int64_t digit(std::int64_t server, std::size_t level) const {
    return server / stride[level] % radices[level];
  }
  [[nodiscard]] std::int64_t moved(std::int64_t server, std::size_t level, std::int64_t by) const {
    const std::int64_t from = digit(server, level);
    const std::int64_t to = (from + by + radices[level]) % radices[level];
    return server + (to - from) * stride[level];
  }
  /// The NICs out of `from` and into `to`, which differ by +1 or -1 in one digit. Between two servers with
  /// two cables data leaves by "+".
  [[nodiscard]] std::pair<Rail, Rail> rails(std::int64_t from, std::int64_t to) const {
    for (std::size_t l = 0; l < levels.size(); ++l) {
      if (digit(from, l) == digit(to, l)) continue;
      const std::vector<Rail>& rails = levels[l].rails;
      if (levels[l].kind != LevelKind::kRing || rails.size() == 1) return {rails[0], rails[0]};
      return moved(from, l, 1) == to ? std::pair{rails[0], rails[1]} : std::pair{rails[1], rails[0]};
    }
    return {kNoRail, kNoRail};
  }
};

/// Rank order over one rail of a rack or a switch.
class OrderRing final : public ServerRing {
 public:
  explicit OrderRing(Rail rail) : rail_(rail) {}
  [[nodiscard]] std::int64_t index_of(std::int64_t server) const override { return server; }
  [[nodiscard]] std::int64_t server_at(std::int64_t index) const override { return index; }
  [[nodiscard]] Rail out_rail(std::int64_t) const override { return rail_; }
  [[nodiscard]] Rail in_rail(std::int64_t) const override { return rail_; }

 private:
  Rail rail_;
};

/// Rank order in a graph, where a server with more NICs than its neighbour uses the partner of the neighbour's NIC.
class PartnerRing final : public ServerRing {
 public:
  PartnerRing(const GraphWiring& wiring, Rail rail)
      : out_(static_cast<std::size_t>(wiring.num_servers), rail), in_(out_) {
    for (std::int64_t server = 0; server < wiring.num_servers; ++server) {
      const std::int64_t next = (server + 1) % wiring.num_servers;
      const auto there = topology::direct_hop(wiring, server, next, rail);
      const auto back = topology::direct_hop(wiring, next, server, rail);
      if (!there || !back) continue;
      const bool is_partner = topology::is_two_way(wiring, *there);
      out_[static_cast<std::size_t>(server)] = is_partner ? rail : back->in;
      in_[static_cast<std::size_t>(next)] = is_partner ? there->in : rail;
    }
  }
  [[nodiscard]] std::int64_t index_of(std::int64_t server) const override { return server; }
  [[nodiscard]] std::int64_t server_at(std::int64_t index) const override { return index; }
  [[nodiscard]] Rail out_rail(std::int64_t server) const override {
    return out_[static_cast<std::size_t>(server)];
  }
  [[nodiscard]] Rail in_rail(std::int64_t server) const override {
    return in_[static_cast<std::size_t>(server)];
  }

 private:
  std::vector<Rail> out_, in_;
};

/// A cycle of neighbours by a closed form; its rails follow from the digits that change.
template <typename Cycle>
class ClosedFormRing final : public ServerRing {
 public:
  ClosedFormRing(ServerGrid grid, Cycle cycle) : grid_(std::move(grid)), cycle_(std::move(cycle)) {}
  [[nodiscard]] std::int64_t index_of(std::int64_t server) const override { return cycle_.index_of(server); }
  [[nodiscard]] std::int64_t server_at(std::int64_t index) const override { return cycle_.server_at(index); }
  [[nodiscard]] Rail out_rail(std::int64_t server) const override {
    return grid_.rails(server, beside(server, +1)).first;
  }
  [[nodiscard]] Rail in_rail(std::int64_t server) const override {
    return grid_.rails(beside(server, -1), server).second;
  }

 private:
  [[nodiscard]] std::int64_t beside(std::int64_t server, std::int64_t by) const {
    return cycle_.server_at((cycle_.index_of(server) + by + grid_.num_servers) % grid_.num_servers);
  }
  ServerGrid grid_;
  Cycle cycle_;
};

/// A cycle that was found by a search: a small table.
class TableRing final : public ServerRing {
 public:
  TableRing(ServerGrid grid, RingStops stops)
      : grid_(std::move(grid)), stops_(std::move(stops)), index_(stops_.size()) {
    for (std::size_t i = 0; i < stops_.size(); ++i) index_[stops_[i].server] = static_cast<std::int32_t>(i);
  }
  [[nodiscard]] std::int64_t index_of(std::int64_t server) const override { return index_[server]; }
  [[nodiscard]] std::int64_t server_at(std::int64_t index) const override { return stops_[index].server; }
  [[nodiscard]] Rail out_rail(std::int64_t server) const override {
    const RingStop& stop = stops_[index_[server]];
    return rail(stop.out_level, stop.out_sign);
  }
  [[nodiscard]] Rail in_rail(std::int64_t server) const override {
    const RingStop& stop = stops_[index_[server]];
    return rail(stop.in_level, stop.in_sign);
  }

 private:
  [[nodiscard]] Rail rail(std::int32_t level, std::int32_t sign) const {
    return grid_.levels[level].rails[sign > 0 ? 0 : 1];
  }
  ServerGrid grid_;
  RingStops stops_;
  std::vector<std::int32_t> index_;
};

/// Do signs of permutations rule out a set of cycles over all NICs of these switches? A cycle through an even
/// number of servers is an odd permutation. Switches of 2 and 3 allow no choice of links except for their
/// direction, so each level's sign is given, and distributing links to rings preserves the product of the
/// signs.
bool signs_forbid(const ServerGrid& grid) {
  bool product_is_odd = false;
  for (const std::int64_t radix : grid.radices) {
    if (radix > 3) return false;
    product_is_odd = product_is_odd != (radix == 2 && grid.num_servers / radix % 2 == 1);
  }
  return product_is_odd != (grid.num_servers % 2 == 0 && grid.radices.size() % 2 == 1);
}

std::vector<RingPort> ports_of(const ServerGrid& grid) {
  std::vector<RingPort> ports;
  for (std::size_t l = 0; l < grid.levels.size(); ++l) {
    const bool is_cable = grid.levels[l].kind == LevelKind::kRing && grid.levels[l].rails.size() > 1;
    ports.push_back({static_cast<std::int32_t>(l), +1, is_cable});
    if (is_cable) ports.push_back({static_cast<std::int32_t>(l), -1, is_cable});
  }
  return ports;
}

/// Searches for rings.
Result<ServerRings> search(const ServerGrid& grid, bool cables, std::int32_t num_rings) {
  const auto unsupported = [&](std::string_view why) {
    return fail(
        Code::kUnsupported,
        fmt::format(
            "flat-ring: {} rings of neighbours over different NICs do not exist on levels of {} servers, "
            "or are not known: {}; ask for fewer rings",
            num_rings, fmt::join(grid.radices, "x"), why));
  };
  if (grid.num_servers > kMaxSearchedServers) {
    return unsupported(
        fmt::format("there is no closed form for this shape, and the search covers up to {} servers, not {}",
                    kMaxSearchedServers, grid.num_servers));
  }
  if (!cables && num_rings == std::ssize(grid.levels) && signs_forbid(grid)) {
    return unsupported("the signs of the permutations that its links make exclude them");
  }
  // Undirected cycles, used in both directions, are found fastest; but with sides of 2 there may be only
  // directed ones.
  const bool undirected = cables && std::ranges::find(grid.radices, 2) == grid.radices.end();
  std::optional<std::vector<RingStops>> found =
      undirected ? search_cable_rings(grid.radices)
                 : search_port_rings(grid.radices, ports_of(grid), num_rings);
  if (!found) return unsupported("the search found none");
  ServerRings rings;
  rings.order = "neighbour cycles";
  for (RingStops& stops : *found) {
    const auto ring = std::make_shared<TableRing>(grid, std::move(stops));
    rings.rings.push_back({ring, +1});
    if (undirected) rings.rings.push_back({ring, -1});
  }
  rings.rings.resize(num_rings);
  return rings;
}

template <typename Cycle>
std::shared_ptr<const ServerRing> closed_form(const ServerGrid& grid, Cycle cycle) {
  return std::make_shared<ClosedFormRing<Cycle>>(grid, std::move(cycle));
}

}  // namespace

std::int32_t max_server_rings(const Topology& topology) {
  const ServerGrid grid(topology);
  if (grid.levels.empty()) return 1;
  if (!topology.servers_relay) return static_cast<std::int32_t>(grid.levels.back().rails.size());
  std::size_t rails = 0;
  for (const Level& level : grid.levels) rails += level.rails.size();
  return static_cast<std::int32_t>(rails);
}

Result<ServerRings> make_server_rings(const Topology& topology, std::int32_t num_rings) {
  const ServerGrid grid(topology);
  ServerRings rings;
  if (!topology.servers_relay || grid.levels.empty()) {
    rings.order = "rank order";
    for (std::int32_t k = 0; k < num_rings; ++k) {
      const Rail rail = grid.levels.empty() ? kNoRail : grid.levels.back().rails[k];
      std::shared_ptr<const ServerRing> ring = std::make_shared<OrderRing>(rail);
      if (const auto& wiring = topology.wiring.value) ring = std::make_shared<PartnerRing>(*wiring, rail);
      rings.rings.push_back({std::move(ring), +1});
    }
    return rings;
  }

  const bool cables = std::ranges::all_of(grid.levels, [](const Level& level) {
    return level.kind == LevelKind::kRing && level.rails.size() == 2;
  });
  const std::int32_t directions = cables ? 2 : 1;
  std::vector<std::shared_ptr<const ServerRing>> cycles;
  if (num_rings <= directions) {
    cycles.push_back(closed_form(grid, pattern::GridCycle(grid.radices)));
  } else if (grid.levels.size() == 2 && num_rings <= 2 * directions) {
    const std::int64_t num_first = pattern::DiagonalCycle::find_num_first(grid.radices[0], grid.radices[1]);
    for (std::int32_t which = 0; num_first > 0 && which < 2; ++which) {
      cycles.push_back(
          closed_form(grid, pattern::DiagonalCycle(grid.radices[0], grid.radices[1], num_first, which)));
    }
  }
  if (cycles.empty()) return search(grid, cables, num_rings);
  rings.order = "neighbour cycles";
  for (const auto& cycle : cycles) {
    for (std::int32_t d = 0; d < directions && static_cast<std::int32_t>(rings.rings.size()) < num_rings;
         ++d) {
      rings.rings.push_back({cycle, d == 0 ? +1 : -1});
    }
  }
  return rings;
}

}  // namespace hips::plan
