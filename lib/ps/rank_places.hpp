#pragma once

#include <cstdint>
#include <vector>

#include <hips/types.hpp>

#include "lib/ps/row_type.hpp"

namespace hips::ps {

/// On which nodes ranks are. The same on all ranks.
struct RankPlaces {
  std::vector<std::int32_t> node_of;  ///< by rank: 0, 1, ...
  std::vector<Rank> service_of;       ///< by node: its lowest rank, which serves

  [[nodiscard]] std::int32_t num_nodes() const { return static_cast<std::int32_t>(service_of.size()); }
  /// The rank that serves on a rank's node.
  [[nodiscard]] Rank service_at(Rank rank) const {
    return service_of[static_cast<std::size_t>(node_of[static_cast<std::size_t>(rank)])];
  }
  [[nodiscard]] bool serves(Rank rank) const { return service_at(rank) == rank; }
  /// The node that knows who owns a key. It is the first owner.
  [[nodiscard]] std::int32_t home_of(Key key) const {
    return static_cast<std::int32_t>((mixed(key) >> 32U) * service_of.size() >> 32U);
  }
  [[nodiscard]] Rank home_service(Key key) const {
    return service_of[static_cast<std::size_t>(home_of(key))];
  }
};

}  // namespace hips::ps
