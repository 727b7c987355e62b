#pragma once

#include <cstddef>
#include <vector>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// The tier of each cable: 0 of those to servers, 1 between switches one of which has servers, 2 one further from them, and so on;
/// SIZE_MAX where no server is reached. The kinds of all nodes are known.
///
/// Cost     linear in nodes and cables.
std::vector<std::size_t> tiers_of_cables(const Cabling& cabling);

/// Gives each cable of unknown rate that of its tier in Cabling::tier_rates, if there is one.
///
/// Result   by tier, how many cables got it.
/// Cost     linear in nodes and cables.
std::vector<std::size_t> give_rates(Cabling& cabling);

}  // namespace hips::topology
