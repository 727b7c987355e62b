#pragma once

#include <optional>
#include <string_view>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// The cabling without management networks: switches each of whose servers has another cable that is at least kFasterThanManagement
/// times as fast as that to the switch. None if there are no such switches. A note names them. Kinds of all nodes are known.
///
/// Cost     linear in the cables.
std::optional<Cabling> without_management(std::string_view name, const Cabling& cabling);

inline constexpr double kFasterThanManagement = 10;

}  // namespace hips::topology
