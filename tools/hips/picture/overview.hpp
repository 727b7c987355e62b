#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "topology/cabling/cabling.hpp"

namespace hips::picture {

/// How a cable compares with its like (topology/health/odd_cables.hpp).
enum class CableState : std::uint8_t {
  kUsual = 0,
  kSlow = 1,
  kDown = 2,
  kAssumed = 4,  ///< the file tells only that there is a way
};

/// Cables with what a picture has to know of them.
struct PicturedCables {
  topology::Cabling cabling;
  std::vector<std::size_t> tiers{};  ///< by node: 0 of servers; SIZE_MAX: joins no servers, not drawn
  std::vector<CableState> states{};  ///< by cable
  /// Servers lead to switches of several levels, as in a BCube: they are counted at their first.
  bool relays = false;
};

/// A server or switch, or several that are drawn as one box.
struct OverviewBox {
  bool is_switch = false;
  std::size_t tier = 0;
  std::vector<std::size_t> nodes{};  ///< ascending
  std::size_t fewest = 0,
              most = 0;  ///< of several servers: at each of the switches that they lead to; 0: no switches
  std::size_t inner_cables = 0;  ///< between its nodes
};

/// The cables of one state between two boxes.
struct OverviewCable {
  std::size_t lower = 0, upper = 0;  ///< boxes
  CableState state = CableState::kUsual;
  std::vector<std::size_t> cables;  ///< ascending
};

/// A topology in so few boxes that they can be read.
struct Overview {
  std::vector<OverviewBox> boxes;
  std::vector<OverviewCable> cables;
};

/// The most boxes of a tier side by side, and of all its rows together.
inline constexpr std::size_t kMostInRow = 20, kMostInTier = 60;

/// Counts servers and switches together until each tier has few boxes, in this order: servers of the same switches, switches
/// above the same boxes, switches with equal numbers of servers below the same switches, those with different numbers, whole
/// tiers. Slow cables and those that are down keep their ends apart from the others; at the last stage only their tier's.
///
/// Cost     n log n in the cables.
Overview overview_of(const PicturedCables& cables);

}  // namespace hips::picture
