#include "lib/cost/bound.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/levels.hpp"
#include "topology/tiers.hpp"

namespace hips::cost {

namespace {

Cut make_cut(std::string name, std::int64_t num_parts, double part_bandwidth) {
  Cut cut;
  cut.name = std::move(name);
  cut.num_parts = num_parts;
  cut.part_bandwidth_bytes_per_s = part_bandwidth;
  if (num_parts > 1) {
    const auto parts = static_cast<double>(num_parts);
    cut.seconds_per_byte = 2 * (parts - 1) / (parts * part_bandwidth);
  }
  return cut;
}

/// Levels of the same radix and bandwidth. Only how many of them are in a set S matters, not which.
struct LevelKindCount {
  std::int64_t radix = 0;
  double bandwidth = 0;  ///< of all rails of the level together
  std::vector<std::string> names;
};

/// The largest cut by levels. For each set S of levels, servers with equal digits in S are a part.
Cut largest_level_cut(const Topology& topology) {
  std::vector<LevelKindCount> kinds;
  for (const Level& level : topology.levels) {
    if (level.kind == LevelKind::kNode) continue;
    const double bandwidth = level.bandwidth_bytes_per_s * static_cast<double>(level.rails.size()) *
                             topology::share_of_nics_in_use(level);
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const LevelKindCount& kind) {
      return kind.radix == level.radix && kind.bandwidth == bandwidth;
    });
    if (same == kinds.end()) {
      kinds.push_back({level.radix, bandwidth, {level.name}});
    } else {
      same->names.push_back(level.name);
    }
  }

  const auto servers = static_cast<double>(topology.num_servers());
  std::vector<std::size_t> chosen(kinds.size(), 0), best;
  double largest = -1;
  for (;;) {
    // The next choice of how many of each kind, like an odometer.
    std::size_t digit = 0;
    while (digit < kinds.size() && chosen[digit] == kinds[digit].names.size()) chosen[digit++] = 0;
    if (digit == kinds.size()) break;
    ++chosen[digit];
    double parts = 1;
    double bandwidth = 0;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      for (std::size_t c = 0; c < chosen[i]; ++c) parts *= static_cast<double>(kinds[i].radix);
      bandwidth += static_cast<double>(chosen[i]) * kinds[i].bandwidth;
    }
    const double seconds_per_byte = 2 * (parts - 1) / (servers * bandwidth);
    if (seconds_per_byte > largest) {
      largest = seconds_per_byte;
      best = chosen;
    }
  }

  std::int64_t parts = 1;
  double bandwidth = 0;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    for (std::size_t c = 0; c < best[i]; ++c) {
      parts *= kinds[i].radix;
      bandwidth += kinds[i].bandwidth;
      names.push_back(kinds[i].names[c]);
    }
  }
  // A part of N/m servers leaves by all their NICs of the levels in S.
  return make_cut(fmt::format("servers equal in {}", fmt::join(names, " and ")), parts,
                  bandwidth * static_cast<double>(topology.num_servers() / parts));
}

}  // namespace

Bound bound(const Topology& topology) {
  const bool uneven =
      !topology.part.empty() || !topology.overrides.empty() || topology.family == Family::kGraph;
  if (uneven) return graph_bound(topology);
  double nics = 0;
  for (const double bandwidth : topology::rail_bandwidths(topology)) nics += bandwidth;
  for (const Level& level : topology.levels) {
    nics -= level.bandwidth_bytes_per_s * static_cast<double>(level.rails.size()) *
            (1 - topology::share_of_nics_in_use(level));
  }
  Bound result;
  result.cuts.push_back(make_cut("single servers", topology.num_servers(), nics));
  const auto all_tiers = topology::tiers(topology);
  if (topology.num_servers() > 1 && all_tiers.empty()) {
    // The set of all levels is the partition into single servers again.
    if (Cut cut = largest_level_cut(topology); cut.num_parts != topology.num_servers()) {
      result.cuts.push_back(std::move(cut));
    }
  }
  for (const topology::Tier& tier : all_tiers) {
    result.cuts.push_back(make_cut(tier.name, tier.count, tier.bandwidth_bytes_per_s));
  }
  for (std::size_t i = 1; i < result.cuts.size(); ++i) {
    if (result.cuts[i].seconds_per_byte > result.cut().seconds_per_byte) result.largest = i;
  }
  return result;
}

}  // namespace hips::cost
