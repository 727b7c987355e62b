#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::topology {

/// "0-3,7": ascending numbers of servers, with ranges for consecutive ones.
std::string part_text(std::span<const std::int64_t> servers);

/// Limits the topology to the servers of `text` ("0-3,7", in any order), and adds them to its name and spec
/// unless they are all servers.
///
/// Cost     the servers in use.
/// Errors   kInvalidArgument: `spec`, the value seen in the list and what would be right.
Result<void> take_part(std::string_view spec, std::string_view text, Topology& topology);

}  // namespace hips::topology
