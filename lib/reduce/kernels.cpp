// Compiled once for each instruction set (meson.build), each time with another HIPS_KERNELS name. This file
// must not instantiate inline code of the standard library: the linker would keep one copy for all
// instruction sets, perhaps the one that needs AVX-512.

#include "lib/reduce/kernels.hpp"

#include "lib/reduce/divide.hpp"
#include "lib/reduce/fold.hpp"

namespace hips::reduce {
namespace HWY_NAMESPACE {
namespace {

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

// Rows are in the order of ReduceOp.

/// Signedness matters only for comparisons and divisions; the other kernels are shared.
template <typename T, typename Unsigned, typename Work, bool kStream>
constexpr KernelRow integers() {
  using Bits = Plain<Unsigned>;
  return {{fold<Bits, Sum, kStream>, fold<Bits, Prod, kStream>, fold<Plain<T>, Min, kStream>,
           fold<Plain<T>, Max, kStream>, average_integers<T, Unsigned, Work>, fold<Bits, Band, kStream>,
           fold<Bits, Bor, kStream>, fold<Bits, Bxor, kStream>, fold<Bits, Land, kStream>,
           fold<Bits, Lor, kStream>, fold<Bits, Lxor, kStream>}};
}

template <typename Elements, bool kStream>
constexpr KernelRow floating() {
  return {{fold<Elements, Sum, kStream>, fold<Elements, Prod, kStream>, fold<Elements, Min, kStream>,
           fold<Elements, Max, kStream>, fold<Elements, Avg, kStream>}};
}

using Float16s = Half<Float16Format>;
using Bfloat16s = Half<Bfloat16Format>;

/// In the order of DataType, as `divide` below.
template <bool kStream>
constexpr KernelGrid grid() {
  using std::uint32_t, std::uint64_t;
  return {{integers<std::int32_t, uint32_t, uint32_t, kStream>(),
           integers<std::int64_t, uint64_t, uint64_t, kStream>(), floating<Plain<float>, kStream>(),
           floating<Plain<double>, kStream>(), integers<std::int8_t, std::uint8_t, uint32_t, kStream>(),
           integers<std::int16_t, std::uint16_t, uint32_t, kStream>(),
           integers<std::uint8_t, std::uint8_t, uint32_t, kStream>(),
           integers<std::uint16_t, std::uint16_t, uint32_t, kStream>(),
           integers<uint32_t, uint32_t, uint32_t, kStream>(),
           integers<uint64_t, uint64_t, uint64_t, kStream>(), floating<Float16s, kStream>(),
           floating<Bfloat16s, kStream>()}};
}

constexpr KernelTable kTable = {
    grid<false>(),
    grid<true>(),
    {divide_integers<std::int32_t, std::uint32_t>, divide_integers<std::int64_t, std::uint64_t>,
     divide_floating<Plain<float>>, divide_floating<Plain<double>>, divide_small_integers<std::int8_t>,
     divide_small_integers<std::int16_t>, divide_small_integers<std::uint8_t>,
     divide_small_integers<std::uint16_t>, divide_integers<std::uint32_t, std::uint32_t>,
     divide_integers<std::uint64_t, std::uint64_t>, divide_floating<Float16s>, divide_floating<Bfloat16s>},
    copy_streaming};

}  // namespace
}  // namespace HWY_NAMESPACE

const KernelTable* HIPS_KERNELS() {
  return &HWY_NAMESPACE::kTable;
}

}  // namespace hips::reduce
