#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <hips/types.hpp>

namespace hips::perf {

/// Writes the input of a rank. The values are chosen so that the result is exact for every type and every
/// order of reduction. Below, h depends on the element, and t = (h + rank) mod n is different for each rank.
///
/// sum, avg        a + t, where a depends on the element; partial sums stay below 2^24 for up to 4,000 ranks,
///                 integers wrap. float16 and bfloat16: a for t = 0, 1 for t = 1, else 0.
/// min, max        a + t; t is at most 63 if the type cannot hold more.
/// prod            3 for the rank h mod n, else -1 for odd ranks and 1 for even ones.
/// band, bor, bxor random bits, each determined by one rank: bit j by that with t = j mod n.
/// land, lor, lxor the rank with t = 0 determines the result; lxor: the one with t = 1 is true, which inverts
/// it.
///
/// A lost, doubled or misplaced contribution changes the result of some element, with these exceptions: min,
/// max, and the bitwise and logical operations other than xor do not show a doubled one; min and max of the
/// smallest types do not show every lost one with more than 64 ranks.
void fill(std::span<std::byte> buffer, DataType type, ReduceOp op, int rank, int num_ranks);

/// Counts the elements of `buffer` that differ from the exact result.
std::int64_t count_wrong(std::span<const std::byte> buffer, DataType type, ReduceOp op, int num_ranks);

}  // namespace hips::perf
