#pragma once

#include <cstddef>

#include <hips/topology.hpp>

#include "lib/comm/calls/call_args.hpp"

/// Reductions by functions that do not commute, for plans that reduce operands in their own order. The plan's
/// allgather gives all vectors to all ranks, and each rank reduces its output locally, in rank order.
///
/// A plan that reduces in rank order (HIPS_REPRODUCIBLE=any, rank_order.hpp) needs connections that no other
/// call uses: every communicator would pay for them in memory and queue pairs, and few programs use such ops.
namespace hips::comm {

/// The size of all vectors together. Throws std::bad_alloc if it exceeds the address space.
std::size_t gathered_bytes(const CallArgs& call, Rank size);

/// The allgather into `all` that replaces the reduction `call`.
CallArgs gather_instead(const CallArgs& call, Rank size, std::byte* all);

/// Reduces this rank's part of the gathered vectors `all` into the output of `call`.
void reduce_gathered(const CallArgs& call, Rank rank, Rank size, const std::byte* all);

}  // namespace hips::comm
