#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <hips/types.hpp>

namespace hips::perf {

/// Writes rank `rank`'s input, crafted so that the result is exact in every type and in every order of
/// folding. Below, h depends on the element, and t = (h + rank) mod n gives each rank another part in it.
///
/// sum, avg        a + t, where a depends on the element; partial sums stay below 2^24 for up to 4,000 ranks,
///                 integers wrap. float16 and bfloat16: a for t = 0, 1 for t = 1, else 0.
/// min, max        a + t; t counts up to 63 only where the type has no room for more.
/// prod            3 for the rank h mod n, else -1 for odd ranks and 1 for even ones.
/// band, bor, bxor random bits, each of which one rank decides: bit j that with t = j mod n.
/// land, lor, lxor the rank with t = 0 decides; lxor: that with t = 1 gives true, which turns the result.
///
/// A contribution that is lost, doubled or out of place changes the result of some element, but: min, max,
/// and the bitwise and logical operations other than xor cannot show a doubled one, and min and max of the
/// smallest types not each lost one of more than 64 ranks.
void fill(std::span<std::byte> buffer, DataType type, ReduceOp op, int rank, int num_ranks);

/// Counts the elements of `buffer` that differ from the exact result.
std::int64_t count_wrong(std::span<const std::byte> buffer, DataType type, ReduceOp op, int num_ranks);

}  // namespace hips::perf
