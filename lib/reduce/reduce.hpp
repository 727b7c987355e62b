#pragma once

#include <cstddef>
#include <span>

#include <hips/types.hpp>

namespace hips::reduce {

/// dst[i] = srcs[0][i] op srcs[1][i] op ... , folded left to right in one pass over memory.
///
/// float16 and bfloat16 are folded in float32 and rounded once, to the nearest, ties to even; NaN comes out
/// quiet. avg divides by the number of sources, so it is for whoever holds all contributions; who folds only
/// some of them folds by partial(op), and calls divide() when all are in. Functions of the program
/// (user_op.hpp) are among the operations; somebody holds them.
///
/// Shapes   `elements` elements of `type` in dst and in each of the one or more sources, aligned as elements;
///          `op` applies to `type`.
/// Cost     reads each source once, writes dst once; an average of integers goes over dst twice.
/// Order    the operands' order is the fold order; the same operands give the same bits on every machine with
///          the same instruction set, wherever the buffers lie.
/// Owns     nothing. dst may be one of the sources; it overlaps them in no other way.
/// Threads  pure; any thread.
void fold(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
          std::size_t elements);

/// fold() past the caches: saves reading dst first, where it is not to be found in a cache soon. Other cores
/// see dst before what the caller stores after it, as with fold().
void fold_streaming(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
                    std::size_t elements);

/// The operation that folds a part of the contributions: sum for avg, else `op` itself.
constexpr ReduceOp partial(ReduceOp op) {
  return op == ReduceOp::kAvg ? ReduceOp::kSum : op;
}

/// data[i] /= divisor, in place: what makes averages of sums. The same sums give the same bits everywhere.
///
/// Shapes   `elements` elements of `type`; a divisor of 1 to 2^31 - 1. Integers are divided towards zero.
void divide(DataType type, std::byte* data, std::size_t elements, std::size_t divisor);

/// memcpy(), and the same past the caches.
void copy(std::byte* dst, const std::byte* src, std::size_t bytes);
void copy_streaming(std::byte* dst, const std::byte* src, std::size_t bytes);

}  // namespace hips::reduce
