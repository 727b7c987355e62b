#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "topology/families/family.hpp"

namespace hips::topology {

std::span<const FamilyEntry* const> families() {
  static constexpr std::array kFamilies = {
      &kBCubeFamily,     &kTorusFamily, &kMeshFamily,   &kFatTreeFamily,
      &kLeafSpineFamily, &kRailFamily,  &kSwitchFamily,
  };
  return kFamilies;
}

const FamilyEntry& entry_of(Family family) {
  for (const FamilyEntry* entry : families()) {
    if (entry->family == family) return *entry;
  }
  if (family == Family::kGraph) return kGraphFamily;
  throw Error(Status::error(Code::kInternal, "topology: a family without an entry in families.cpp"));
}

std::string server_address(const Topology& topology, std::int64_t server) {
  const auto all = topology.digits(static_cast<Rank>(server * topology.ranks_per_server));
  const auto of_server = std::span(all).subspan(static_cast<std::size_t>(first_network_level(topology)));
  return entry_of(topology.family).address(topology, of_server);
}

std::string digit_address(const Topology& topology, std::span<const std::int64_t> digits) {
  const auto levels = network_levels(topology);
  // A single server has no digit.
  if (digits.empty()) return "<0>";
  const bool dots =
      std::any_of(levels.begin(), levels.end(), [](const Level& level) { return level.radix > 10; });
  std::string text = "<";
  for (std::size_t l = digits.size(); l-- > 0;) {
    text += std::to_string(digits[l]);
    if (dots && l > 0) text += '.';
  }
  return text + ">";
}

}  // namespace hips::topology

namespace hips {

std::string Topology::address(Rank rank) const {
  std::string text = topology::server_address(*this, rank / ranks_per_server);
  if (ranks_per_server > 1) text += fmt::format(":{}", rank % ranks_per_server);
  return text;
}

}  // namespace hips
