#pragma once

#include <cstddef>
#include <span>

#include <hips/types.hpp>

namespace hips::reduce {

/// dst[i] = srcs[0][i] op srcs[1][i] op ... , folded left to right in one pass over memory.
///
/// Shapes   `elements` elements of `type` in dst and in each of the one or more sources.
/// Cost     reads each source once, writes dst once.
/// Order    the operands' order is the fold order; the same operands give the same bits on every machine with
///          the same instruction set, wherever the buffers lie.
/// Owns     nothing. dst may be one of the sources; it overlaps them in no other way.
/// Threads  pure; any thread.
void fold(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
          std::size_t elements);

/// fold() into memory that nobody reads soon: the stores go past the caches, which saves reading dst first.
void fold_streaming(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
                    std::size_t elements);

/// memcpy(), and the same past the caches.
void copy(std::byte* dst, const std::byte* src, std::size_t bytes);
void copy_streaming(std::byte* dst, const std::byte* src, std::size_t bytes);

}  // namespace hips::reduce
