#pragma once

#include <cstddef>
#include <vector>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// Gives each cable of unknown rate that of its tier in Cabling::tier_rates, if there is one. The tier is 0 of cables to servers, 1
/// between switches one of which has servers, 2 one further from them, and so on. The kinds of all nodes are known.
///
/// Result   by tier, how many cables got it.
/// Cost     linear in nodes and cables.
std::vector<std::size_t> give_rates(Cabling& cabling);

}  // namespace hips::topology
