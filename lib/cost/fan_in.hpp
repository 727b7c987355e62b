#pragma once

#include <cstdint>

#include <hips/plan.hpp>

namespace hips::cost {

/// The largest number of peers that send to the rank of `program` by one NIC in one round: 1 in a ring, n - 1
/// in a mesh of n, 0 if no message arrives by a NIC.
///
/// Cost     a table look-up for each source of the program.
/// Threads  pure; any thread.
std::int64_t fan_in(const Program& program);

}  // namespace hips::cost
