#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <hips/topology.hpp>

#include "topology/graph_wiring.hpp"

namespace hips::topology {

/// Converts a rank to its number in the whole topology, and back; -1 if its server is not in use.
inline std::int64_t whole_rank(const Topology& topology, Rank rank) {
  if (topology.part.empty()) return rank;
  const std::int64_t local = topology.ranks_per_server;
  return topology.whole_server(rank / local) * local + rank % local;
}
inline Rank rank_in_use(const Topology& topology, std::int64_t whole) {
  if (topology.part.empty()) return static_cast<Rank>(whole);
  const std::int64_t local = topology.ranks_per_server;
  const std::int64_t server = topology.server_in_use(whole / local);
  return server < 0 ? -1 : static_cast<Rank>(server * local + whole % local);
}

/// Does a rail serve a level?
inline bool serves(const Level& level, Rail rail) {
  return std::find(level.rails.begin(), level.rails.end(), rail) != level.rails.end();
}

/// Moves from one rank to another one digit at a time, if servers relay. Ranks are those of the whole. For
/// walk().
template <typename Visit>
class DigitWalk {
 public:
  /// `out`: see walk().
  DigitWalk(const Topology& topology, std::int64_t a, std::int64_t b, Rail out, Visit& visit)
      : topology_(topology),
        b_(b),
        from_(a),
        // From the first hop on, the local rank is b's.
        here_(a / topology.ranks_per_server * topology.ranks_per_server + b % topology.ranks_per_server),
        wanted_(out),
        visit_(visit) {}

  void run() {
    const Rail first = wanted_;
    if (first != kNoRail) correct_levels([&](const Level& level) { return serves(level, first); });
    wanted_ = kNoRail;
    correct_levels([](const Level&) { return true; });
  }

 private:
  template <typename Chosen>
  void correct_levels(Chosen&& is_chosen) {
    const auto num_levels = static_cast<std::int32_t>(topology_.levels.size());
    std::int64_t stride = topology_.ranks_per_server;
    for (std::int32_t l = stride > 1 ? 1 : 0; l < num_levels; ++l) {
      const Level& level = topology_.levels[static_cast<std::size_t>(l)];
      if (is_chosen(level)) correct(level, l, stride);
      stride *= level.radix;
    }
  }

  /// Moves until the digit of a level is b's.
  void correct(const Level& level, std::int32_t l, std::int64_t stride) {
    const std::int64_t goal = b_ / stride % level.radix;
    std::int64_t at = here_ / stride % level.radix;
    if (at == goal) return;
    const auto hop_to = [&](std::int64_t digit, Rail out_rail, Rail in_rail) {
      here_ += (digit - at) * stride;
      at = digit;
      visit_(from_, here_, out_rail, in_rail, l);
      from_ = here_;
    };
    if (level.kind != LevelKind::kRing && level.kind != LevelKind::kLine) {
      hop_to(goal, level.rails.front(), level.rails.front());
    } else {
      const std::int64_t up = (goal - at + level.radix) % level.radix;
      bool plus = 2 * up <= level.radix;
      if (wanted_ == level.rails[0]) plus = true;
      if (wanted_ == level.rails[1]) plus = false;
      if (level.kind == LevelKind::kLine) plus = goal > at;  // a line has one direction only
      while (at != goal) {
        if (plus) {
          hop_to((at + 1) % level.radix, level.rails[0], level.rails[1]);
        } else {
          hop_to((at + level.radix - 1) % level.radix, level.rails[1], level.rails[0]);
        }
      }
    }
    wanted_ = kNoRail;
  }

  const Topology& topology_;
  std::int64_t b_, from_, here_;
  Rail wanted_;  ///< the first hop leaves by this rail
  Visit& visit_;
};

/// Calls visit(Hop) for every hop of the route from a to b, in order and, except in a graph, without allocating.
///
/// `out` is the NIC by which the data leaves a, if several lead to b: another rail of a rack, the other
/// direction of a ring, or another level first if servers relay. kNoRail, or a NIC that does not lead to b,
/// selects the route of Topology::route().
///
/// No hop changes only the local rank: the first hop out of a server ends at b's local rank. In a part, the
/// ends of hops at servers that are not in use are -1.
///
/// Cost     one step for each level and each hop.
template <typename Visit>
void walk(const Topology& topology, Rank from_rank, Rank to_rank, Rail out, Visit&& see) {
  const std::int64_t a = whole_rank(topology, from_rank), b = whole_rank(topology, to_rank);
  const auto visit = [&](std::int64_t from, std::int64_t to, Rail out_rail, Rail in_rail,
                         std::int32_t level) {
    see(Hop{.from = rank_in_use(topology, from),
            .to = rank_in_use(topology, to),
            .out = out_rail,
            .in = in_rail,
            .level = level});
  };
  if (a == b) return;
  const std::int64_t local = topology.ranks_per_server;
  if (a / local == b / local) {
    visit(a, b, kNoRail, kNoRail, 0);
    return;
  }
  if (topology.wiring.value != nullptr) {
    std::int64_t at = a;
    for (const Hop& hop : graph_route(*topology.wiring.value, a / local, b / local, out)) {
      const std::int64_t next = hop.to * local + b % local;
      visit(at, next, hop.out, hop.in, local > 1 ? 1 : 0);
      at = next;
    }
    return;
  }
  if (topology.servers_relay) {
    DigitWalk(topology, a, b, out, visit).run();
    return;
  }
  // One hop, through all tiers up to the highest level at which the servers differ.
  const std::int32_t first = local > 1 ? 1 : 0;
  std::int32_t highest = first;
  std::int64_t stride = local;
  for (std::int32_t l = first; l < static_cast<std::int32_t>(topology.levels.size()); ++l) {
    const std::int64_t radix = topology.levels[static_cast<std::size_t>(l)].radix;
    if (a / stride % radix != b / stride % radix) highest = l;
    stride *= radix;
  }
  const Level& level = topology.levels[static_cast<std::size_t>(highest)];
  const Rail rail = serves(level, out) ? out : level.rails.front();
  visit(a, b, rail, rail, highest);
}

/// Calls visit(Hop) for every hop of Topology::neighbours(), without making the list.
template <typename Visit>
void visit_neighbours(const Topology& topology, Rank rank, Visit&& visit) {
  const std::int64_t whole = whole_rank(topology, rank);
  std::int64_t stride = 1;
  for (std::int32_t l = 0; l < static_cast<std::int32_t>(topology.levels.size()); ++l) {
    const Level& level = topology.levels[static_cast<std::size_t>(l)];
    const std::int64_t own = whole / stride % level.radix;
    const auto hop = [&](std::int64_t digit, Rail out, Rail in) {
      const Rank to = rank_in_use(topology, whole + (digit - own) * stride);
      if (to >= 0) visit(Hop{.from = rank, .to = to, .out = out, .in = in, .level = l});
    };
    if (level.kind == LevelKind::kLine) {
      if (own > 0) hop(own - 1, level.rails[1], level.rails[0]);
      if (own + 1 < level.radix) hop(own + 1, level.rails[0], level.rails[1]);
    } else if (level.kind == LevelKind::kRing) {
      const std::int64_t up = (own + 1) % level.radix;
      const std::int64_t down = (own + level.radix - 1) % level.radix;
      const auto plus = [&] { hop(up, level.rails[0], level.rails[1]); };
      const auto minus = [&] { hop(down, level.rails[1], level.rails[0]); };
      if (up <= down) plus();
      minus();
      if (up > down) plus();
    } else if (topology.wiring.value != nullptr && level.kind != LevelKind::kNode) {
      const std::int64_t local = topology.ranks_per_server;
      visit_direct(*topology.wiring.value, whole / local, [&](const Hop& direct) {
        visit(Hop{.from = rank,
                  .to = static_cast<Rank>(direct.to * local + whole % local),
                  .out = direct.out,
                  .in = direct.in,
                  .level = l});
      });
    } else {
      for (std::int64_t digit = 0; digit < level.radix; ++digit) {
        if (digit == own) continue;
        if (level.kind == LevelKind::kNode) hop(digit, kNoRail, kNoRail);
        for (const Rail rail : level.rails) hop(digit, rail, rail);
      }
    }
    stride *= level.radix;
  }
}

/// The number of hops between the servers that are farthest apart.
inline std::int64_t diameter_hops(const Topology& topology) {
  if (topology.wiring.value != nullptr) return topology.wiring.value->diameter_hops;
  std::int64_t hops = 0;
  for (const Level& level : topology.levels) {
    if (level.kind == LevelKind::kNode) continue;
    if (!topology.servers_relay) return 1;
    hops += level.kind == LevelKind::kRing   ? level.radix / 2
            : level.kind == LevelKind::kLine ? level.radix - 1
                                             : 1;
  }
  return hops;
}

}  // namespace hips::topology
