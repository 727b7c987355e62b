#pragma once

#include <cstddef>
#include <span>

#include <hips/types.hpp>

namespace hips::reduce {

/// dst[i] = srcs[0][i] op srcs[1][i] op ... , reduced left to right in one pass over memory.
///
/// float16 and bfloat16 are reduced in float32 and rounded once, to nearest, ties to even; a NaN result is
/// quiet. avg divides by the number of sources, so it needs all contributions. A caller that has only some of
/// them uses partial(op), and calls divide() once all are reduced. User-defined functions (user_op.hpp) are
/// valid operations; the caller keeps them alive with UserOpHold.
///
/// Shapes   `elements` elements of `type` in dst and in each of the sources (at least one), aligned as elements;
///          `op` is defined for `type`.
/// Cost     reads each source once, writes dst once; an average of integers passes over dst twice.
/// Order    the order of the operands. The same operands give the same bits on every machine with the same
///          instruction set, whatever the addresses of the buffers.
/// Owns     nothing. dst may be equal to one of the sources; other overlaps are not allowed.
/// Threads  pure; any thread.
void fold(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
          std::size_t elements);

/// fold() with streaming stores, for a dst that will not be read from a cache soon: it saves reading dst
/// first. As with fold(), other cores see dst before later stores of the caller.
void fold_streaming(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
                    std::size_t elements);

/// The operation that reduces only some of the contributions: sum for avg, otherwise `op` itself.
constexpr ReduceOp partial(ReduceOp op) {
  return op == ReduceOp::kAvg ? ReduceOp::kSum : op;
}

/// data[i] /= divisor, in place: turns sums into averages. The same sums give the same bits everywhere.
///
/// Shapes   `elements` elements of `type`; a divisor of 1 to 2^31 - 1. Integers are divided towards zero.
void divide(DataType type, std::byte* data, std::size_t elements, std::size_t divisor);

/// memcpy(), and memcpy() with streaming stores.
void copy(std::byte* dst, const std::byte* src, std::size_t bytes);
void copy_streaming(std::byte* dst, const std::byte* src, std::size_t bytes);

}  // namespace hips::reduce
