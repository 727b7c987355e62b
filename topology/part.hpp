#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::topology {

/// "0-3,7": numbers of servers, ascending, as ranges where they follow each other.
std::string part_text(std::span<const std::int64_t> servers);

/// Takes the servers of `text` ("0-3,7", in any order) into use, and no others. Names the topology after
/// them, unless they are all that it has.
///
/// Cost     the servers in use.
/// Errors   kInvalidArgument: `spec`, what stands in the list and what would be right.
Result<void> take_part(std::string_view spec, std::string_view text, Topology& topology);

}  // namespace hips::topology
