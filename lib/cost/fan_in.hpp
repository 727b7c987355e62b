#pragma once

#include <cstdint>

#include <hips/plan.hpp>

namespace hips::cost {

/// The most peers that send to the rank of `program` by one NIC in one round: 1 in a ring, n - 1 in a mesh of
/// n, 0 where nothing arrives by a NIC.
///
/// Cost     the program's sources, each a look into a table of its rounds.
/// Threads  pure; any thread.
std::int64_t fan_in(const Program& program);

}  // namespace hips::cost
