#include "topology/wiring/grid_match.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace hips::topology {
namespace {

constexpr std::size_t kNone = SIZE_MAX;

class GridMatch {
 public:
  GridMatch(const Neighbourhood& seen, const Neighbourhood& grid, std::size_t seed, std::int64_t most_missing)
      : seen_(seen),
        grid_(grid),
        most_missing_(most_missing),
        place_(seen.of.size(), kNone),
        server_at_(grid.of.size(), kNone) {
    find_order(seed);
  }

  std::optional<std::vector<std::size_t>> run() {
    if (order_.size() < seen_.of.size()) return std::nullopt;
    const std::size_t most_steps = 40 * seen_.of.size() + 20'000;
    choices_.resize(order_.size());
    missing_.assign(order_.size() + 1, 0);
    choices_[0] = {0};
    std::size_t depth = 0;
    for (std::size_t steps = 0; steps < most_steps; ++steps) {
      if (choices_[depth].empty()) {
        if (depth == 0) return std::nullopt;
        --depth;
        server_at_[place_[order_[depth]]] = kNone;
        place_[order_[depth]] = kNone;
        continue;
      }
      const std::size_t place = choices_[depth].back();
      choices_[depth].pop_back();
      const auto missing = missing_at(order_[depth], place);
      if (!missing || missing_[depth] + *missing > most_missing_) continue;
      place_[order_[depth]] = place;
      server_at_[place] = order_[depth];
      missing_[depth + 1] = missing_[depth] + *missing;
      if (++depth == order_.size()) return place_;
      find_choices(depth);
    }
    return std::nullopt;
  }

 private:
  /// Servers with most neighbours before them come first, of equal ones those that were reached first.
  void find_order(std::size_t seed) {
    std::vector<std::size_t> placed(seen_.of.size(), 0), time(seen_.of.size(), kNone);
    std::vector<bool> done(seen_.of.size(), false);
    std::set<std::tuple<std::int64_t, std::size_t, std::size_t>> next;
    const auto entry = [&](std::size_t server) {
      return std::tuple(-static_cast<std::int64_t>(placed[server]), time[server], server);
    };
    std::size_t clock = 0;
    time[seed] = clock++;
    next.insert(entry(seed));
    while (!next.empty()) {
      const std::size_t server = std::get<2>(*next.begin());
      next.erase(next.begin());
      done[server] = true;
      order_.push_back(server);
      for (const auto& near : seen_.of[server]) {
        if (done[near.server]) continue;
        if (time[near.server] == kNone) {
          time[near.server] = clock++;
        } else {
          next.erase(entry(near.server));
        }
        ++placed[near.server];
        next.insert(entry(near.server));
      }
    }
  }

  /// Free places beside those of a placed neighbour; the last is tried first.
  void find_choices(std::size_t depth) {
    const std::size_t server = order_[depth];
    choices_[depth].clear();
    for (const auto& near : seen_.of[server]) {
      if (place_[near.server] == kNone) continue;
      for (const auto& beside : grid_.of[place_[near.server]])
        if (server_at_[beside.server] == kNone) choices_[depth].push_back(beside.server);
      break;
    }
    std::ranges::reverse(choices_[depth]);
  }

  /// The number of cables to placed servers that are missing with a server at a place; none if it cannot be there.
  [[nodiscard]] std::optional<std::int64_t> missing_at(std::size_t server, std::size_t place) const {
    if (seen_.of[server].size() > grid_.of[place].size()) return std::nullopt;
    std::int64_t missing = 0, matched = 0;
    for (const auto& beside : grid_.of[place]) {
      const std::size_t other = server_at_[beside.server];
      if (other == kNone) continue;
      const std::int32_t cables = seen_.cables(server, other);
      if (cables > beside.cables) return std::nullopt;
      missing += beside.cables - cables;
      if (cables > 0) ++matched;
    }
    std::int64_t placed = 0;
    for (const auto& near : seen_.of[server])
      if (place_[near.server] != kNone) ++placed;
    if (matched < placed) return std::nullopt;
    return missing;
  }

  const Neighbourhood& seen_;
  const Neighbourhood& grid_;
  std::int64_t most_missing_;
  std::vector<std::size_t> order_;      ///< servers of the wiring
  std::vector<std::size_t> place_;      ///< by server
  std::vector<std::size_t> server_at_;  ///< by place
  std::vector<std::vector<std::size_t>> choices_;
  std::vector<std::int64_t> missing_;
};

}  // namespace

std::vector<std::size_t> Neighbourhood::layers(std::size_t from) const {
  std::vector<std::size_t> sizes;
  std::vector<bool> reached(of.size(), false);
  std::vector<std::size_t> front{from};
  reached[from] = true;
  while (!front.empty()) {
    sizes.push_back(front.size());
    std::vector<std::size_t> next;
    for (const std::size_t server : front) {
      for (const Near& near : of[server]) {
        if (reached[near.server]) continue;
        reached[near.server] = true;
        next.push_back(near.server);
      }
    }
    front = std::move(next);
  }
  return sizes;
}

std::optional<std::vector<std::size_t>> match_grid(const Neighbourhood& seen, const Neighbourhood& grid,
                                                   std::size_t seed, std::int64_t most_missing) {
  return GridMatch(seen, grid, seed, most_missing).run();
}

}  // namespace hips::topology
