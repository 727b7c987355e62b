// Compiled once for each instruction set (meson.build), each time with another HIPS_KERNELS name. Nothing
// here may instantiate inline code of the standard library: the linker would keep one copy for all, perhaps
// the one that needs AVX-512.

#include "lib/reduce/kernels.hpp"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

namespace hips::reduce {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Integer sums and products wrap, so they are computed on unsigned lanes: same bits, no undefined overflow.
struct Sum {
  template <typename V>
  static V apply(V a, V b) {
    return hn::Add(a, b);
  }
};
struct Prod {
  template <typename V>
  static V apply(V a, V b) {
    return hn::Mul(a, b);
  }
};
// As std::min and std::max: the first operand unless the second is strictly beyond it. The machine's own
// minimum treats NaN and signed zero in ways that differ between instruction sets.
struct Min {
  template <typename V>
  static V apply(V a, V b) {
    return hn::IfThenElse(hn::Lt(b, a), b, a);
  }
};
struct Max {
  template <typename V>
  static V apply(V a, V b) {
    return hn::IfThenElse(hn::Lt(a, b), b, a);
  }
};

// Stores past the caches ask for aligned addresses, so how many elements go the ordinary way first; all of
// them where no element is aligned.
template <typename T>
std::size_t elements_before_aligned(const std::byte* dst, std::size_t vector_bytes, std::size_t elements) {
  const std::size_t beyond = reinterpret_cast<std::size_t>(dst) % vector_bytes;
  if (beyond % sizeof(T) != 0) return elements;
  const std::size_t head = beyond == 0 ? 0 : (vector_bytes - beyond) / sizeof(T);
  return head < elements ? head : elements;
}

// One vector of every source, folded. The same code serves the tail (through a small buffer), so that an
// element's bits do not depend on where in the vector it lies.
template <typename T, typename Op, bool kStream = false>
void fold(std::byte* dst_bytes, const std::byte* const* srcs, std::size_t num_srcs, std::size_t elements) {
  const hn::ScalableTag<T> tag;
  const std::size_t lanes = hn::Lanes(tag);
  T* dst = reinterpret_cast<T*>(dst_bytes);
  const auto source = [&](std::size_t s, std::size_t i) { return reinterpret_cast<const T*>(srcs[s]) + i; };
  const auto store = [&](auto vector, T* to) {
    if constexpr (kStream) {
      hn::Stream(vector, tag, to);
    } else {
      hn::StoreU(vector, tag, to);
    }
  };
  // Fewer elements than a vector, through a small buffer; one by one where that is quicker.
  const auto fold_few = [&](std::size_t i, std::size_t few) {
    constexpr std::size_t kOneByOne = 4;
    const hn::CappedTag<T, 1> one;
    if (few <= kOneByOne) {
      for (; few > 0; ++i, --few) {
        auto acc = hn::LoadU(one, source(0, i));
        for (std::size_t s = 1; s < num_srcs; ++s) acc = Op::apply(acc, hn::LoadU(one, source(s, i)));
        hn::StoreU(acc, one, dst + i);
      }
      return;
    }
    HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
    __builtin_memcpy(buffer, source(0, i), few * sizeof(T));
    auto acc = hn::Load(tag, buffer);
    for (std::size_t s = 1; s < num_srcs; ++s) {
      __builtin_memcpy(buffer, source(s, i), few * sizeof(T));
      acc = Op::apply(acc, hn::Load(tag, buffer));
    }
    hn::Store(acc, tag, buffer);
    __builtin_memcpy(dst + i, buffer, few * sizeof(T));
  };
  std::size_t i = 0;
  if constexpr (kStream) {
    const std::size_t head = elements_before_aligned<T>(dst_bytes, lanes * sizeof(T), elements);
    if (head == elements) return fold<T, Op>(dst_bytes, srcs, num_srcs, elements);
    if (head > 0) fold_few(0, head);
    i = head;
  }
  // Four independent accumulators hide the latency of the operation.
  for (; i + 4 * lanes <= elements; i += 4 * lanes) {
    auto acc0 = hn::LoadU(tag, source(0, i));
    auto acc1 = hn::LoadU(tag, source(0, i + lanes));
    auto acc2 = hn::LoadU(tag, source(0, i + 2 * lanes));
    auto acc3 = hn::LoadU(tag, source(0, i + 3 * lanes));
    for (std::size_t s = 1; s < num_srcs; ++s) {
      acc0 = Op::apply(acc0, hn::LoadU(tag, source(s, i)));
      acc1 = Op::apply(acc1, hn::LoadU(tag, source(s, i + lanes)));
      acc2 = Op::apply(acc2, hn::LoadU(tag, source(s, i + 2 * lanes)));
      acc3 = Op::apply(acc3, hn::LoadU(tag, source(s, i + 3 * lanes)));
    }
    store(acc0, dst + i);
    store(acc1, dst + i + lanes);
    store(acc2, dst + i + 2 * lanes);
    store(acc3, dst + i + 3 * lanes);
  }
  for (; i + lanes <= elements; i += lanes) {
    auto acc = hn::LoadU(tag, source(0, i));
    for (std::size_t s = 1; s < num_srcs; ++s) acc = Op::apply(acc, hn::LoadU(tag, source(s, i)));
    store(acc, dst + i);
  }
  if (i < elements) fold_few(i, elements - i);
  if constexpr (kStream) hwy::FlushStream();
}

void copy_streaming(std::byte* dst, const std::byte* src, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = elements_before_aligned<std::uint8_t>(dst, lanes, bytes);
  __builtin_memcpy(dst, src, i);
  const auto* from = reinterpret_cast<const std::uint8_t*>(src);
  auto* to = reinterpret_cast<std::uint8_t*>(dst);
  for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
    const auto part0 = hn::LoadU(tag, from + i);
    const auto part1 = hn::LoadU(tag, from + i + lanes);
    const auto part2 = hn::LoadU(tag, from + i + 2 * lanes);
    const auto part3 = hn::LoadU(tag, from + i + 3 * lanes);
    hn::Stream(part0, tag, to + i);
    hn::Stream(part1, tag, to + i + lanes);
    hn::Stream(part2, tag, to + i + 2 * lanes);
    hn::Stream(part3, tag, to + i + 3 * lanes);
  }
  __builtin_memcpy(dst + i, src + i, bytes - i);
  hwy::FlushStream();
}

// 64-bit products have no vector instruction before AVX-512; the compiler's scalar code is as good.
void fold_prod_int64(std::byte* dst_bytes, const std::byte* const* srcs, std::size_t num_srcs,
                     std::size_t elements) {
  auto* dst = reinterpret_cast<std::uint64_t*>(dst_bytes);
  for (std::size_t i = 0; i < elements; ++i) {
    std::uint64_t acc = reinterpret_cast<const std::uint64_t*>(srcs[0])[i];
    for (std::size_t s = 1; s < num_srcs; ++s) acc *= reinterpret_cast<const std::uint64_t*>(srcs[s])[i];
    dst[i] = acc;
  }
}

template <bool kStream>
constexpr KernelGrid grid() {
  return {{{fold<std::uint32_t, Sum, kStream>, fold<std::uint32_t, Prod, kStream>,
            fold<std::int32_t, Min, kStream>, fold<std::int32_t, Max, kStream>},
           {fold<std::uint64_t, Sum, kStream>, fold_prod_int64, fold<std::int64_t, Min, kStream>,
            fold<std::int64_t, Max, kStream>},
           {fold<float, Sum, kStream>, fold<float, Prod, kStream>, fold<float, Min, kStream>,
            fold<float, Max, kStream>},
           {fold<double, Sum, kStream>, fold<double, Prod, kStream>, fold<double, Min, kStream>,
            fold<double, Max, kStream>}}};
}

constexpr KernelTable kTable = {grid<false>(), grid<true>(), copy_streaming};

}  // namespace
}  // namespace HWY_NAMESPACE

const KernelTable* HIPS_KERNELS() {
  return &HWY_NAMESPACE::kTable;
}

}  // namespace hips::reduce
