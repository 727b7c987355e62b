// Compiled once for each instruction set (meson.build), each time with another HIPS_KERNELS name. Nothing
// here may instantiate inline code of the standard library: the linker would keep one copy for all, perhaps
// the one that needs AVX-512.

#include "lib/reduce/kernels.hpp"

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

// One vector of every source, folded. The same code serves the tail (through a small buffer), so that an
// element's bits do not depend on where in the vector it lies.
template <typename T, typename Op>
void fold(std::byte* dst_bytes, const std::byte* const* srcs, std::size_t num_srcs, std::size_t elements) {
  const hn::ScalableTag<T> tag;
  const std::size_t lanes = hn::Lanes(tag);
  T* dst = reinterpret_cast<T*>(dst_bytes);
  std::size_t i = 0;
  // Four independent accumulators hide the latency of the operation.
  for (; i + 4 * lanes <= elements; i += 4 * lanes) {
    const T* first = reinterpret_cast<const T*>(srcs[0]) + i;
    auto acc0 = hn::LoadU(tag, first);
    auto acc1 = hn::LoadU(tag, first + lanes);
    auto acc2 = hn::LoadU(tag, first + 2 * lanes);
    auto acc3 = hn::LoadU(tag, first + 3 * lanes);
    for (std::size_t s = 1; s < num_srcs; ++s) {
      const T* src = reinterpret_cast<const T*>(srcs[s]) + i;
      acc0 = Op::apply(acc0, hn::LoadU(tag, src));
      acc1 = Op::apply(acc1, hn::LoadU(tag, src + lanes));
      acc2 = Op::apply(acc2, hn::LoadU(tag, src + 2 * lanes));
      acc3 = Op::apply(acc3, hn::LoadU(tag, src + 3 * lanes));
    }
    hn::StoreU(acc0, tag, dst + i);
    hn::StoreU(acc1, tag, dst + i + lanes);
    hn::StoreU(acc2, tag, dst + i + 2 * lanes);
    hn::StoreU(acc3, tag, dst + i + 3 * lanes);
  }
  for (; i + lanes <= elements; i += lanes) {
    auto acc = hn::LoadU(tag, reinterpret_cast<const T*>(srcs[0]) + i);
    for (std::size_t s = 1; s < num_srcs; ++s) {
      acc = Op::apply(acc, hn::LoadU(tag, reinterpret_cast<const T*>(srcs[s]) + i));
    }
    hn::StoreU(acc, tag, dst + i);
  }
  const std::size_t rest = elements - i;
  if (rest == 0) return;
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
  __builtin_memcpy(buffer, reinterpret_cast<const T*>(srcs[0]) + i, rest * sizeof(T));
  auto acc = hn::Load(tag, buffer);
  for (std::size_t s = 1; s < num_srcs; ++s) {
    __builtin_memcpy(buffer, reinterpret_cast<const T*>(srcs[s]) + i, rest * sizeof(T));
    acc = Op::apply(acc, hn::Load(tag, buffer));
  }
  hn::Store(acc, tag, buffer);
  __builtin_memcpy(dst + i, buffer, rest * sizeof(T));
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

constexpr KernelTable kTable = {{
    {fold<std::uint32_t, Sum>, fold<std::uint32_t, Prod>, fold<std::int32_t, Min>, fold<std::int32_t, Max>},
    {fold<std::uint64_t, Sum>, fold_prod_int64, fold<std::int64_t, Min>, fold<std::int64_t, Max>},
    {fold<float, Sum>, fold<float, Prod>, fold<float, Min>, fold<float, Max>},
    {fold<double, Sum>, fold<double, Prod>, fold<double, Min>, fold<double, Max>},
}};

}  // namespace
}  // namespace HWY_NAMESPACE

const KernelTable* HIPS_KERNELS() {
  return &HWY_NAMESPACE::kTable;
}

}  // namespace hips::reduce
