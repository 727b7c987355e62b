#pragma once

#include <cstddef>

#include <hips/topology.hpp>

#include "lib/comm/calls/call_args.hpp"

/// Reductions by functions that do not commute, on plans that fold operands as they come: all ranks get the
/// vectors of all, by the plan's allgather, and each folds what it wants in the order of ranks.
///
/// Folding on the way would take channels between ranks that no other call uses, as HIPS_REPRODUCIBLE=any has
/// them (rank_order.hpp): memory and queue pairs of every communicator for what few call.
namespace hips::comm {

/// Bytes of all vectors. Throws std::bad_alloc where memory has no room for them.
std::size_t gathered_bytes(const CallArgs& call, Rank size);

/// The allgather that the ranks do instead of `call`, a reduction, with its result in `all`.
CallArgs gather_instead(const CallArgs& call, Rank size, std::byte* all);

/// Folds what is this rank's of `all` into the output of `call`.
void fold_gathered(const CallArgs& call, Rank rank, Rank size, const std::byte* all);

}  // namespace hips::comm
