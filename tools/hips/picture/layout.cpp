#include "tools/hips/picture/layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "tools/hips/picture/tiers.hpp"
#include "topology/levels.hpp"

namespace hips::picture {
namespace {

constexpr double kGap = 92;  ///< between neighbours of a row
constexpr double kAlongRing = 84;
constexpr double kRow = 110;  ///< between rows
constexpr double kEdge = 70;  ///< around the picture

/// The row of each node, from the top. Trees grow upwards from the servers. The levels of a server-centric
/// network alternate above and below the servers, so that two of them do not cross.
std::vector<std::int64_t> rows_by_tier(std::vector<std::int64_t> tiers, bool both_sides) {
  if (both_sides) {
    for (std::int64_t& tier : tiers) tier = tier % 2 == 1 ? -(tier + 1) / 2 : tier / 2;
  }
  const std::int64_t top = *std::ranges::max_element(tiers);
  for (std::int64_t& tier : tiers) tier = top - tier;
  return tiers;
}

/// Spreads each row over the width of the widest.
PictureLayout rows_of(const Graph& graph, const std::vector<std::int64_t>& rows) {
  const std::int64_t last = *std::ranges::max_element(rows);
  std::vector<std::int64_t> count(static_cast<std::size_t>(last) + 1, 0), placed(count);
  for (const std::int64_t row : rows) ++count[static_cast<std::size_t>(row)];
  const auto widest = static_cast<double>(*std::ranges::max_element(count));
  PictureLayout layout;
  layout.width = 2 * kEdge + std::max(widest - 1, 3.0) * kGap;
  layout.height = kTitleHeight + 2 * kEdge + static_cast<double>(last) * kRow;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    const double share = (static_cast<double>(placed[row]++) + 0.5) / static_cast<double>(count[row]);
    const double inner = layout.width - 2 * kEdge + kGap;
    layout.at.push_back(
        {kEdge - kGap / 2 + share * inner, kTitleHeight + kEdge + static_cast<double>(rows[i]) * kRow});
  }
  return layout;
}

/// A torus of up to two dimensions as a grid with curved wrap-around cables; with more dimensions a ring of
/// servers. In a grid the servers of a part keep their positions in the whole.
PictureLayout grid_of(const Topology& topology) {
  const auto levels = topology::network_levels(topology);
  const std::int64_t servers = topology.num_servers();
  PictureLayout layout;
  if (levels.size() > 2 || topology.family == Family::kGraph) {
    const double radius = std::max(200.0, static_cast<double>(servers) * kAlongRing / (2 * std::numbers::pi));
    for (std::int64_t s = 0; s < servers; ++s) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(s) / static_cast<double>(servers);
      layout.at.push_back(
          {kEdge + radius * (1 + std::sin(angle)), kTitleHeight + kEdge + radius * (1 - std::cos(angle))});
    }
    layout.width = 2 * (kEdge + radius);
    layout.height = kTitleHeight + 2 * (kEdge + radius);
    return layout;
  }
  const std::int64_t across = levels.empty() ? 1 : levels[0].radix;
  for (std::int64_t s = 0; s < servers; ++s) {
    const std::int64_t place = topology.whole_server(s);
    layout.at.push_back({kEdge + static_cast<double>(place % across) * kGap * 1.2,
                         kTitleHeight + kEdge + static_cast<double>(place / across) * kRow * 0.8});
  }
  const std::int64_t rows = topology.num_whole_servers() / across;
  layout.width = 2 * kEdge + static_cast<double>(std::max<std::int64_t>(across - 1, 3)) * kGap * 1.2;
  layout.height = kTitleHeight + 2 * kEdge + static_cast<double>(rows - 1) * kRow * 0.8;
  return layout;
}

/// A straight line, or a curve around boxes between the ends: a wrap-around cable bends away from its row or
/// column.
std::string cable_path(Point a, Point b, bool wrap, bool second) {
  if (!wrap && !second) return fmt::format("M{:.0f} {:.0f}L{:.0f} {:.0f}", a.x, a.y, b.x, b.y);
  const bool level = std::abs(a.y - b.y) < 1;
  const double bend = !wrap ? 16 : level ? 60 : 104;  // the curve reaches half of this, which clears a box
  const double x = (a.x + b.x) / 2 + (level ? 0 : bend), y = (a.y + b.y) / 2 - (level ? bend : 0);
  return fmt::format("M{:.0f} {:.0f}Q{:.0f} {:.0f} {:.0f} {:.0f}", a.x, a.y, x, y, b.x, b.y);
}

/// Cables of rows and columns or of rings, as straight as the boxes allow.
void add_straight_paths(const Topology& topology, const Graph& graph, PictureLayout& layout) {
  for (const GraphLink& link : graph.links) {
    const Point a = layout.at[static_cast<std::size_t>(link.a)],
                b = layout.at[static_cast<std::size_t>(link.b)];
    // Between servers, a distance of more than one place is a wrap-around; a side of 2 has a second cable
    // back.
    const bool between_servers = link.b < topology.num_servers();
    const bool same_row = between_servers || std::abs(a.y - b.y) < 1;
    const bool far = std::abs(a.x - b.x) > kGap * 1.3 || std::abs(a.y - b.y) > kRow;
    layout.paths.push_back(cable_path(a, b, same_row && far, between_servers && link.b < link.a));
  }
}

/// A BCube of two levels: digit 0 horizontally, digit 1 vertically. Each cable has its own position in the
/// channel above its row or beside its column, the nearest server's innermost, so that cables of a switch
/// never cross:
///
///                  [level 1 switch 0]-----+
///         +--------------+                |
///   [level 0 switch 0]  [server]----------+
PictureLayout matrix_of(const Topology& topology, const Graph& graph) {
  const auto levels = topology::network_levels(topology);
  const auto across = static_cast<double>(levels[0].radix), down = static_cast<double>(levels[1].radix);
  const double step_x = std::min(4.0, 40 / down), step_y = std::min(4.0, 40 / across);
  const double pitch_x = kBoxWidth + 28 + down * step_x, pitch_y = kBoxHeight + 22 + across * step_y;
  const double left = kBoxWidth / 2 + 24, top = kTitleHeight + kBoxHeight / 2 + 16;
  const double first_x = left + kBoxWidth + 40, first_y = top + kBoxHeight + 22 + across * step_y;
  PictureLayout layout;
  layout.width = first_x + (across - 1) * pitch_x + kBoxWidth / 2 + 20 + down * step_x;
  layout.height = first_y + (down - 1) * pitch_y + kBoxHeight / 2 + 24;
  layout.at.resize(graph.nodes.size());
  const auto column = [&](std::int64_t server) {
    return static_cast<double>(topology.whole_server(server) % levels[0].radix);
  };
  const auto row = [&](std::int64_t server) {
    return static_cast<double>(topology.whole_server(server) / levels[0].radix);
  };
  for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
    layout.at[static_cast<std::size_t>(server)] = {first_x + column(server) * pitch_x,
                                                   first_y + row(server) * pitch_y};
  }
  for (const GraphLink& link : graph.links) {
    const double x = column(link.a), y = row(link.a);
    const Point server = layout.at[static_cast<std::size_t>(link.a)];
    Point& at = layout.at[static_cast<std::size_t>(link.b)];
    if (link.a_port == levels[0].rails.front()) {
      at = {left, server.y};
      const double channel = server.y - kBoxHeight / 2 - 9 - x * step_y;
      layout.paths.push_back(fmt::format(
          "M{:.1f} {:.1f}V{:.1f}H{:.1f}V{:.1f}", left + kBoxWidth / 2 - 8 - x * std::min(step_y, 60 / across),
          server.y - kBoxHeight / 2, channel, server.x - 12, server.y - kBoxHeight / 2));
    } else {
      at = {server.x, top};
      const double channel = server.x + kBoxWidth / 2 + 9 + y * step_x;
      layout.paths.push_back(fmt::format("M{:.1f} {:.1f}H{:.1f}V{:.1f}H{:.1f}", at.x + kBoxWidth / 2,
                                         top + kBoxHeight / 2 - 4 - y * std::min(step_x, 22 / down), channel,
                                         server.y, server.x + kBoxWidth / 2));
    }
  }
  return layout;
}

/// Many servers with one NIC each: columns below their switch instead of an unreadable row. The cables run
/// beside the column, the uppermost server's innermost.
///
///        [leaf 0]       [leaf 1]
///      ++   |         ++
///      |+-[server]    |+-[server]
///      +--[server]    +--[server]
PictureLayout columns_of(const Topology& topology, const Graph& graph) {
  constexpr std::size_t kInColumn = 16;
  constexpr double kStep = 2.4, kPitchX = kBoxWidth + 22 + kInColumn * kStep, kPitchY = kBoxHeight + 8;
  std::map<std::int64_t, std::vector<std::size_t>> below;  // cables, by the switch at their upper end
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    if (graph.links[i].a < topology.num_servers()) below[graph.links[i].b].push_back(i);
  }
  const auto tiers = tiers_of(topology, graph);
  const std::int64_t top = *std::ranges::max_element(tiers);
  std::map<std::int64_t, double> in_tier, placed;
  double columns = 0;
  for (const auto& [node, cables] : below)
    columns += std::ceil(static_cast<double>(cables.size()) / kInColumn);
  for (std::size_t i = 0; i < tiers.size(); ++i) in_tier[tiers[i]] += 1;
  double widest = columns * kPitchX;
  for (const auto& [tier, number] : in_tier) {
    if (tier > 1) widest = std::max(widest, number * kGap);
  }
  PictureLayout layout;
  layout.at.resize(graph.nodes.size());
  layout.paths.resize(graph.links.size());
  const double leaf_y = kTitleHeight + 30 + static_cast<double>(top - 1) * kRow;
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    if (tiers[i] < 2) continue;
    const double share = (placed[tiers[i]]++ + 0.5) / in_tier[tiers[i]];
    layout.at[i] = {20 + share * widest, leaf_y - static_cast<double>(tiers[i] - 1) * kRow};
  }
  const double space = (widest - columns * kPitchX) / std::max<double>(static_cast<double>(below.size()), 1);
  double x = 20 + space / 2;
  double lowest = leaf_y;
  for (const auto& [node, cables] : below) {
    const std::size_t wide = (cables.size() + kInColumn - 1) / kInColumn;
    const Point leaf{x + static_cast<double>(wide) * kPitchX / 2, leaf_y};
    layout.at[static_cast<std::size_t>(node)] = leaf;
    for (std::size_t i = 0; i < cables.size(); ++i) {
      const auto column = static_cast<double>(i / kInColumn), place = static_cast<double>(i % kInColumn);
      const Point server{x + (column + 1) * kPitchX - kBoxWidth / 2 - 4, leaf_y + 66 + place * kPitchY};
      layout.at[static_cast<std::size_t>(graph.links[cables[i]].a)] = server;
      const double beside = server.x - kBoxWidth / 2 - 10 - place * kStep;
      layout.paths[cables[i]] =
          fmt::format("M{:.1f} {:.1f}V{:.1f}H{:.1f}V{:.1f}H{:.1f}", leaf.x + (place - 7.5) * kStep,
                      leaf.y + kBoxHeight / 2, leaf.y + kBoxHeight / 2 + 6 + place * kStep / 2, beside,
                      server.y, server.x - kBoxWidth / 2);
      lowest = std::max(lowest, server.y);
    }
    x += static_cast<double>(wide) * kPitchX + space;
  }
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const GraphLink& link = graph.links[i];
    if (!layout.paths[i].empty()) continue;
    layout.paths[i] = cable_path(layout.at[static_cast<std::size_t>(link.a)],
                                 layout.at[static_cast<std::size_t>(link.b)], false, false);
  }
  layout.width = widest + 40;
  layout.height = lowest + kBoxHeight / 2 + 24;
  return layout;
}

/// The number of columns that fits a page without scrolling and leaves the fewest empty places in the last
/// row.
std::int64_t columns_for(std::int64_t servers) {
  constexpr std::int64_t kFewest = 8, kMost = 11;
  const auto empty = [&](std::int64_t columns) { return (columns - servers % columns) % columns; };
  std::int64_t best = kFewest;
  for (std::int64_t columns = kFewest; columns <= kMost; ++columns)
    if (empty(columns) <= empty(best)) best = columns;
  return best;
}

/// A rack of many servers with several NICs each: rows of servers, with the switches of the rails beside
/// them. All cables of a rail share one line, down beside the switches and along above each row. A server's
/// NICs are on its upper side.
///
///   [rail 0 switch]--+ +--+------+------
///   [rail 1 switch]--|-+  | +----|-+----
///                    | | [server][server]
///                    | +--+------+------
///                    +----|-+----|-+----
///                        [server][server]
PictureLayout rack_of(const Topology& topology, const Graph& graph) {
  const std::int64_t columns = columns_for(topology.num_servers());
  const auto rails = static_cast<double>(topology.num_rails);
  const double step = std::min(5.0, 60 / rails);
  const double pitch_x = kBoxWidth + 16, pitch_y = kBoxHeight + 24 + rails * step;
  const double left = kBoxWidth / 2 + 24, duct = left + kBoxWidth / 2 + 14;
  const double first_x = duct + rails * step + 22 + kBoxWidth / 2;
  const double first_y = kTitleHeight + 16 + rails * step + kBoxHeight / 2;
  const double switch_pitch = kBoxHeight + 8;
  PictureLayout layout;
  const auto rows = static_cast<double>((topology.num_servers() + columns - 1) / columns);
  layout.width = first_x + static_cast<double>(columns - 1) * pitch_x + kBoxWidth / 2 + 20;
  layout.height =
      std::max(first_y + (rows - 1) * pitch_y, first_y + (rails - 1) * switch_pitch) + kBoxHeight / 2 + 24;
  layout.at.resize(graph.nodes.size());
  for (std::int64_t server = 0; server < topology.num_servers(); ++server)
    layout.at[static_cast<std::size_t>(server)] = {first_x + static_cast<double>(server % columns) * pitch_x,
                                                   first_y + static_cast<double>(server / columns) * pitch_y};
  for (const GraphLink& link : graph.links) {
    const auto rail = static_cast<double>(link.a_port);
    const Point server = layout.at[static_cast<std::size_t>(link.a)];
    const Point at{left, first_y + rail * switch_pitch};
    layout.at[static_cast<std::size_t>(link.b)] = at;
    // The first rail is the outermost.
    const double down = duct + rail * step,
                 along = server.y - kBoxHeight / 2 - 10 - (rails - 1 - rail) * step;
    const double port = server.x + (rail - (rails - 1) / 2) * std::min(8.0, 56 / rails);
    layout.paths.push_back(fmt::format("M{:.1f} {:.1f}H{:.1f}V{:.1f}H{:.1f}V{:.1f}", left + kBoxWidth / 2,
                                       at.y, down, along, port, server.y - kBoxHeight / 2));
  }
  return layout;
}

/// The cables of a graph with the end that is closer to the servers first, as other families have them.
Graph lower_ends_first(const Topology& topology, Graph graph) {
  const auto tiers = tiers_of(topology, graph);
  for (GraphLink& link : graph.links) {
    if (tiers[static_cast<std::size_t>(link.a)] <= tiers[static_cast<std::size_t>(link.b)]) continue;
    std::swap(link.a, link.b);
    std::swap(link.a_port, link.b_port);
  }
  return graph;
}

/// Do cables join two servers?
bool has_server_cables(const Topology& topology, const Graph& graph) {
  return std::ranges::any_of(graph.links,
                             [&](const GraphLink& link) { return link.b < topology.num_servers(); });
}

}  // namespace

PictureLayout layout_of(const Topology& topology, const Graph& wiring) {
  const bool any_graph = topology.family == Family::kGraph;
  const Graph graph = any_graph ? lower_ends_first(topology, wiring) : wiring;
  if (topology.family == Family::kBCube && topology::network_levels(topology).size() == 2)
    return matrix_of(topology, graph);
  constexpr Rank kMostInARow = 20;
  if (topology.num_switches > 0 && topology.num_rails == 1 && topology.num_servers() > kMostInARow &&
      !has_server_cables(topology, graph))
    return columns_of(topology, graph);
  if (topology.family == Family::kRail && topology.num_servers() > kMostInARow)
    return rack_of(topology, graph);
  PictureLayout layout =
      topology.num_switches == 0
          ? grid_of(topology)
          : rows_of(graph, rows_by_tier(tiers_of(topology, graph), topology.servers_relay));
  add_straight_paths(topology, graph, layout);
  return layout;
}

}  // namespace hips::picture
