#include <fmt/format.h>

#include "topology/formats/parse.hpp"
#include "topology/spec.hpp"
#include "topology/wiring/layout.hpp"

namespace hips::topology {

std::vector<FamilyLayout> lay_out_rack(const ServerWiring& wiring) {
  const std::size_t servers = wiring.num_servers, rails = wiring.size() - servers;
  if (rails == 0 || rails > static_cast<std::size_t>(kMaxRails)) return {};
  // All but a few of the cables of a rack.
  if (servers * rails > wiring.cables.size() + static_cast<std::size_t>(kMostMissing)) return {};
  auto topology =
      parse(rails == 1 ? fmt::format("switch:{}", servers) : fmt::format("rail:{},{}", servers, rails));
  if (!topology) return {};
  FamilyLayout layout{.whole = *std::move(topology), .seen = {}};
  for (std::size_t node = 0; node < wiring.size(); ++node)
    layout.seen.push_back(static_cast<std::int64_t>(node));
  return {std::move(layout)};
}

}  // namespace hips::topology
