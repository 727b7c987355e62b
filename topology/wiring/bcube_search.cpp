#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/formats/parse.hpp"
#include "topology/wiring/grid_match.hpp"
#include "topology/wiring/layout.hpp"

namespace hips::topology {
namespace {

/// More servers are not tried. With as many, three missing cables or servers hide no level.
constexpr std::size_t kMostServers = 64;

class BCubeSearch {
 public:
  explicit BCubeSearch(const ServerWiring& wiring) : wiring_(wiring) {}

  std::vector<FamilyLayout> make() {
    if (wiring_.num_servers > kMostServers || wiring_.size() == wiring_.num_servers) return {};
    for (const WiredCable& cable : wiring_.cables)
      if (wiring_.is_server(cable.b) || !wiring_.is_server(cable.a)) return {};
    seen_.of.resize(wiring_.size());
    for (const WiredCable& cable : wiring_.cables) seen_.add(cable.a, cable.b);
    for (std::size_t server = 0; server < wiring_.num_servers; ++server)
      levels_ = std::max(levels_, wiring_.of[server].size());
    for (std::size_t node = wiring_.num_servers; node < wiring_.size(); ++node)
      largest_ = std::max(largest_, wiring_.of[node].size());
    if (levels_ < 2) return {};
    // All servers of a BCube are alike.
    while (wiring_.of[seed_].size() < levels_) ++seed_;
    for (std::int64_t missing = 0; missing <= kMostMissing && layouts_.empty(); ++missing) {
      for (std::int64_t servers = 0; servers <= missing; ++servers) {
        std::vector<std::size_t> radices;
        try_radices(wiring_.num_servers + static_cast<std::size_t>(servers), 2, radices, missing - servers);
      }
    }
    return std::move(layouts_);
  }

 private:
  /// Tries all ascending radices with this product, the first of them at least `least`.
  void try_radices(std::size_t places, std::size_t least, std::vector<std::size_t>& radices,
                   std::int64_t missing) {
    if (radices.size() == levels_) {
      if (places == 1 && least >= largest_) try_match(radices, missing);
      return;
    }
    for (std::size_t radix = least; radix <= places; ++radix) {
      if (places % radix != 0) continue;
      radices.push_back(radix);
      try_radices(places / radix, radix, radices, missing);
      radices.pop_back();
    }
  }

  void try_match(const std::vector<std::size_t>& radices, std::int64_t missing) {
    auto topology = parse(fmt::format("bcube:{}", fmt::join(radices, "x")));
    if (!topology) return;
    const Graph graph = topology->graph();
    Neighbourhood bcube;
    bcube.of.resize(graph.nodes.size());
    for (const GraphLink& link : graph.links)
      bcube.add(static_cast<std::size_t>(link.a), static_cast<std::size_t>(link.b));
    const auto places = match_grid(seen_, bcube, seed_, missing);
    if (!places) return;
    FamilyLayout layout{.whole = *std::move(topology),
                        .seen = std::vector<std::int64_t>(graph.nodes.size(), -1)};
    for (std::size_t node = 0; node < places->size(); ++node)
      layout.seen[(*places)[node]] = static_cast<std::int64_t>(node);
    layouts_.push_back(std::move(layout));
  }

  const ServerWiring& wiring_;
  Neighbourhood seen_;  ///< of servers and switches
  std::size_t levels_ = 0, largest_ = 0, seed_ = 0;
  std::vector<FamilyLayout> layouts_;
};

}  // namespace

std::vector<FamilyLayout> search_bcube(const ServerWiring& wiring) {
  return BCubeSearch(wiring).make();
}

}  // namespace hips::topology
