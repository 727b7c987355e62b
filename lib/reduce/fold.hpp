#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/reduce/lanes.hpp"
#include "lib/reduce/ops.hpp"

// One pass over any number of sources. Included by kernels.cpp, once for each instruction set.
namespace hips::reduce {
namespace HWY_NAMESPACE {
namespace {

// Streaming stores need aligned addresses. Returns the number of elements before the first aligned address;
// all elements if no element is aligned.
template <typename T>
std::size_t elements_before_aligned(const std::byte* dst, std::size_t vector_bytes, std::size_t elements) {
  const std::size_t beyond = reinterpret_cast<std::size_t>(dst) % vector_bytes;
  if (beyond % sizeof(T) != 0) return elements;
  const std::size_t head = beyond == 0 ? 0 : (vector_bytes - beyond) / sizeof(T);
  return head < elements ? head : elements;
}

// Reduces one vector of every source at a time. The same code handles the tail, through a small buffer, so
// the bits of an element do not depend on its position in the vector.
template <typename Elements, typename Op, bool kStream>
void fold_by(const Op op, std::byte* dst_bytes, const std::byte* const* srcs, std::size_t num_srcs,
             std::size_t elements) {
  using T = typename Elements::Stored;
  using Lane = typename Elements::Lane;
  const hn::ScalableTag<Lane> tag;
  const std::size_t lanes = hn::Lanes(tag);
  T* dst = reinterpret_cast<T*>(dst_bytes);
  const auto source = [&](std::size_t s, std::size_t i) { return reinterpret_cast<const T*>(srcs[s]) + i; };
  const auto operand = [&](auto d, const T* from) { return op.enter(d, Elements::load(d, from)); };
  // Reduces fewer elements than a vector holds, through a small buffer; one by one if that is faster.
  const auto fold_few = [&](std::size_t i, std::size_t few) {
    constexpr std::size_t kOneByOne = 4;
    if constexpr (sizeof(T) >= 4) {
      const hn::CappedTag<Lane, 1> one;
      if (few <= kOneByOne) {
        for (; few > 0; ++i, --few) {
          auto acc = operand(one, source(0, i));
          for (std::size_t s = 1; s < num_srcs; ++s) acc = op.combine(one, acc, operand(one, source(s, i)));
          Elements::store(one, op.leave(one, acc), dst + i);
        }
        return;
      }
    }
    HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(Lane)] = {};
    __builtin_memcpy(buffer, source(0, i), few * sizeof(T));
    auto acc = operand(tag, buffer);
    for (std::size_t s = 1; s < num_srcs; ++s) {
      __builtin_memcpy(buffer, source(s, i), few * sizeof(T));
      acc = op.combine(tag, acc, operand(tag, buffer));
    }
    Elements::store(tag, op.leave(tag, acc), buffer);
    __builtin_memcpy(dst + i, buffer, few * sizeof(T));
  };
  std::size_t i = 0;
  if constexpr (kStream) {
    const std::size_t head = elements_before_aligned<T>(dst_bytes, lanes * sizeof(Lane), elements);
    if (head == elements) return fold_by<Elements, Op, false>(op, dst_bytes, srcs, num_srcs, elements);
    // For 16-bit floats, a vector of elements is two vectors of lanes.
    for (; i + lanes < head; i += lanes) fold_few(i, lanes);
    if (head > i) fold_few(i, head - i);
    i = head;
  }
  // Four independent accumulators hide the latency of the operation.
  for (; i + 4 * lanes <= elements; i += 4 * lanes) {
    auto acc0 = operand(tag, source(0, i));
    auto acc1 = operand(tag, source(0, i + lanes));
    auto acc2 = operand(tag, source(0, i + 2 * lanes));
    auto acc3 = operand(tag, source(0, i + 3 * lanes));
    for (std::size_t s = 1; s < num_srcs; ++s) {
      acc0 = op.combine(tag, acc0, operand(tag, source(s, i)));
      acc1 = op.combine(tag, acc1, operand(tag, source(s, i + lanes)));
      acc2 = op.combine(tag, acc2, operand(tag, source(s, i + 2 * lanes)));
      acc3 = op.combine(tag, acc3, operand(tag, source(s, i + 3 * lanes)));
    }
    Elements::template store_four<kStream>(tag, op.leave(tag, acc0), op.leave(tag, acc1), op.leave(tag, acc2),
                                           op.leave(tag, acc3), dst + i);
  }
  for (; i + lanes <= elements; i += lanes) {
    auto acc = operand(tag, source(0, i));
    for (std::size_t s = 1; s < num_srcs; ++s) acc = op.combine(tag, acc, operand(tag, source(s, i)));
    Elements::store(tag, op.leave(tag, acc), dst + i);
  }
  if (i < elements) fold_few(i, elements - i);
  if constexpr (kStream) hwy::FlushStream();
}

/// The kernel for an operation.
template <typename Elements, typename Op, bool kStream>
void fold(std::byte* dst, const std::byte* const* srcs, std::size_t num_srcs, std::size_t elements) {
  fold_by<Elements, Op, kStream>(Op(num_srcs), dst, srcs, num_srcs, elements);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hips::reduce
