#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/formats/parse.hpp"
#include "topology/wiring/grid_match.hpp"
#include "topology/wiring/layout.hpp"

namespace hips::topology {
namespace {

using Sides = std::vector<std::size_t>;

/// The most shapes of one size that are tried, those first whose servers are as far apart as seen.
constexpr std::size_t kMostShapes = 4;
/// The most corners of a mesh that are tried.
constexpr std::size_t kMostSeeds = 16;

struct Shape {
  bool is_torus = false;
  Sides sides;
  std::size_t seed = 0;        ///< the server at place 0
  std::size_t unlikeness = 0;  ///< of distances from the seed to those from place 0
};

void add_factors(std::size_t number, std::size_t count, std::size_t most, Sides& factors,
                 std::vector<Sides>& out) {
  if (count == 0) {
    if (number == 1) out.push_back(factors);
    return;
  }
  for (std::size_t side = std::min(number, most); side >= 2; --side) {
    if (number % side != 0) continue;
    factors.push_back(side);
    add_factors(number / side, count - 1, side, factors, out);
    factors.pop_back();
  }
}

/// By distance from place 0: how many places of a grid.
std::vector<std::size_t> layers_of(bool is_torus, const Sides& sides) {
  std::vector<std::size_t> layers{1};
  for (const std::size_t side : sides) {
    std::vector<std::size_t> line(is_torus ? side / 2 + 1 : side, is_torus ? 2 : 1);
    line[0] = 1;
    if (is_torus && side % 2 == 0) line.back() = 1;
    std::vector<std::size_t> next(layers.size() + line.size() - 1, 0);
    for (std::size_t i = 0; i < layers.size(); ++i)
      for (std::size_t j = 0; j < line.size(); ++j) next[i + j] += layers[i] * line[j];
    layers = std::move(next);
  }
  return layers;
}

std::size_t unlikeness(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const auto x = i < a.size() ? a[i] : 0, y = i < b.size() ? b[i] : 0;
    sum += x > y ? x - y : y - x;
  }
  return sum;
}

class GridLayout {
 public:
  explicit GridLayout(const ServerWiring& wiring) : wiring_(wiring) {}

  std::vector<FamilyLayout> make() {
    if (wiring_.size() > wiring_.num_servers || wiring_.num_servers < 2) return {};
    seen_.of.resize(wiring_.num_servers);
    for (const WiredCable& cable : wiring_.cables) seen_.add(cable.a, cable.b);
    for (const auto& cables : wiring_.of) most_cables_ = std::max(most_cables_, cables.size());
    // Few missing servers and cables first: a mesh is also a torus of which many are missing.
    for (std::size_t missing = 0; missing <= static_cast<std::size_t>(kMostMissing); ++missing) {
      for (std::size_t servers = 0; servers <= missing; ++servers) {
        const auto cables = static_cast<std::int64_t>(missing - servers);
        for (const Shape& shape : shapes(servers, cables)) {
          if (auto layout = try_shape(shape, cables)) return {std::move(*layout)};
        }
      }
    }
    return {};
  }

 private:
  [[nodiscard]] std::size_t num_servers() const { return wiring_.num_servers; }

  /// Those of a size that can have the cables, the likeliest first.
  std::vector<Shape> shapes(std::size_t missing_servers, std::int64_t missing_cables) {
    std::vector<Shape> all;
    const std::size_t places = num_servers() + missing_servers;
    for (std::size_t dims = (most_cables_ + 1) / 2; dims <= most_cables_; ++dims) {
      std::vector<Sides> sides;
      Sides factors;
      add_factors(places, dims, places, factors, sides);
      // With 2 * dims cables for each server.
      const std::size_t most_lost = 2 * dims * missing_servers + static_cast<std::size_t>(missing_cables);
      const auto fits = [&](std::size_t cables) {
        return cables >= wiring_.cables.size() && cables <= wiring_.cables.size() + most_lost;
      };
      for (const Sides& one : sides) {
        std::size_t cables = 0;
        for (const std::size_t side : one) cables += places / side * (side - 1);
        if (fits(places * dims)) add_shape({.is_torus = true, .sides = one}, torus_seeds(), all);
        if (fits(cables)) add_shape({.is_torus = false, .sides = one}, corners(dims), all);
      }
    }
    std::ranges::stable_sort(all, {}, [](const Shape& shape) { return shape.unlikeness; });
    const std::size_t most = num_servers() / 8 + 16 * most_cables_;
    std::erase_if(all, [&](const Shape& shape) { return shape.unlikeness > most; });
    if (all.size() > kMostShapes * kMostSeeds) all.resize(kMostShapes * kMostSeeds);
    return all;
  }

  void add_shape(Shape shape, const std::vector<std::size_t>& seeds, std::vector<Shape>& all) {
    const auto layers = layers_of(shape.is_torus, shape.sides);
    for (const std::size_t seed : seeds) {
      auto [known, is_new] = layers_.try_emplace(seed);
      if (is_new) known->second = seen_.layers(seed);
      shape.seed = seed;
      shape.unlikeness = unlikeness(known->second, layers);
      all.push_back(shape);
    }
  }

  /// All servers of a torus are alike; those are best around which nothing is missing.
  std::vector<std::size_t> torus_seeds() {
    const auto is_whole = [&](std::size_t server) { return wiring_.of[server].size() == most_cables_; };
    std::vector<std::size_t> seeds;
    for (std::size_t server = 0; server < num_servers() && seeds.empty(); ++server) {
      if (is_whole(server) &&
          std::ranges::all_of(seen_.of[server], [&](const auto& near) { return is_whole(near.server); }))
        seeds.push_back(server);
    }
    for (std::size_t server = 0; server < num_servers() && seeds.size() < 2; ++server)
      if (is_whole(server)) seeds.push_back(server);
    return seeds;
  }

  /// Servers with one cable for each dimension, or fewer where some are missing.
  std::vector<std::size_t> corners(std::size_t dims) {
    std::vector<std::size_t> seeds;
    for (std::size_t server = 0; server < num_servers() && seeds.size() < kMostSeeds; ++server)
      if (wiring_.of[server].size() <= dims) seeds.push_back(server);
    return seeds;
  }

  std::optional<FamilyLayout> try_shape(const Shape& shape, std::int64_t missing) {
    auto topology =
        parse(fmt::format("{}:{}", shape.is_torus ? "torus" : "mesh", fmt::join(shape.sides, "x")));
    if (!topology) return std::nullopt;
    Neighbourhood grid;
    grid.of.resize(static_cast<std::size_t>(topology->num_servers()));
    for (const GraphLink& link : topology->graph().links)
      grid.add(static_cast<std::size_t>(link.a), static_cast<std::size_t>(link.b));
    const auto places = match_grid(seen_, grid, shape.seed, missing);
    if (!places) return std::nullopt;
    FamilyLayout layout{.whole = *std::move(topology), .seen = std::vector<std::int64_t>(grid.of.size(), -1)};
    for (std::size_t server = 0; server < places->size(); ++server)
      layout.seen[(*places)[server]] = static_cast<std::int64_t>(server);
    return layout;
  }

  const ServerWiring& wiring_;
  Neighbourhood seen_;
  std::size_t most_cables_ = 0;  ///< of a server
  std::map<std::size_t, std::vector<std::size_t>> layers_;
};

}  // namespace

std::vector<FamilyLayout> lay_out_grid(const ServerWiring& wiring) {
  return GridLayout(wiring).make();
}

}  // namespace hips::topology
