#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/wiring/wiring.hpp"

namespace hips::topology {

/// Neighbours of each server (or node), and the number of cables to each.
struct Neighbourhood {
  struct Near {
    std::size_t server = 0;
    std::int32_t cables = 0;
  };
  std::vector<std::vector<Near>> of;

  [[nodiscard]] std::int32_t cables(std::size_t a, std::size_t b) const {
    for (const Near& near : of[a])
      if (near.server == b) return near.cables;
    return 0;
  }
  void add(std::size_t a, std::size_t b) {
    add_end(a, b);
    add_end(b, a);
  }
  /// By distance from a server: how many servers.
  [[nodiscard]] std::vector<std::size_t> layers(std::size_t from) const;

 private:
  void add_end(std::size_t a, std::size_t b) {
    for (Near& near : of[a]) {
      if (near.server != b) continue;
      ++near.cables;
      return;
    }
    of[a].push_back({b, 1});
  }
};

/// Finds places for all servers of a wiring among those of a grid, or for all servers and switches, such that each cable is one of the grid and at most
/// `most_missing` cables between placed servers are missing.
///
/// Cost     few steps for each server of a grid: those with most placed neighbours are placed first, and hardly have a
///          choice. Gives up after a fixed number of steps.
/// Returns  the place of each server; the place of `seed` is 0.
std::optional<std::vector<std::size_t>> match_grid(const Neighbourhood& seen, const Neighbourhood& grid,
                                                   std::size_t seed, std::int64_t most_missing);

}  // namespace hips::topology
