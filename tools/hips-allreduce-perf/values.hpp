#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <hips/types.hpp>

namespace hips::perf {

/// Writes rank `rank`'s input, crafted so that the result is exact in every type and in every order of
/// folding.
///
/// sum, min, max   a + (h + rank) mod n; a and h depend on the element. Over the ranks the second term takes
///                 each of 0..n-1 once. Partial sums stay below 2^24 for up to 4,000 ranks.
/// prod            3 for the rank h mod n, else -1 for odd ranks and 1 for even ones.
///
/// A contribution that is lost, doubled or out of place changes the result of some element, in each case but
/// one: min and max cannot show a doubled one.
void fill(std::span<std::byte> buffer, DataType type, ReduceOp op, int rank, int num_ranks);

/// Counts the elements of `buffer` that differ from the exact result.
std::int64_t count_wrong(std::span<const std::byte> buffer, DataType type, ReduceOp op, int num_ranks);

}  // namespace hips::perf
