#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/reduce/fold.hpp"

// Averages. For kernels.cpp, once for each instruction set.
namespace hips::reduce {
namespace HWY_NAMESPACE {
namespace {

// The upper half of a product. A multiplication by the reciprocal gives the quotient or one less. It takes a
// few cycles; a division takes dozens.
inline std::uint32_t multiply_high(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(a) * b >> 32U);
}
inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(a) * b >> 64U);
}

/// Divides towards zero. `Work` is unsigned, and holds the elements and the divisor.
template <typename T, typename Work>
void divide_integers(std::byte* data, std::size_t elements, std::size_t divisor) {
  const auto by = static_cast<Work>(divisor);
  const Work reciprocal = static_cast<Work>(-1) / by;
  for (std::size_t i = 0; i < elements; ++i) {
    T value;
    __builtin_memcpy(&value, data + i * sizeof(T), sizeof(T));
    const bool negative = value < T{0};
    const auto wide = static_cast<Work>(value);
    const Work size = negative ? Work{0} - wide : wide;
    Work quotient = multiply_high(size, reciprocal);
    if (size - quotient * by >= by) ++quotient;
    value = static_cast<T>(negative ? Work{0} - quotient : quotient);
    __builtin_memcpy(data + i * sizeof(T), &value, sizeof(T));
  }
}

/// Divides elements of 8 and 16 bits, a vector at a time, in float. The exact quotient q of integers below
/// 2^17 differs from the next larger integer by at least 1 / divisor. It would round up only if the
/// difference were below q / 2^24, which is impossible because divisor * q is below 2^17.
template <typename T>
void divide_small_integers(std::byte* data, std::size_t elements, std::size_t divisor) {
  const hn::ScalableTag<float> floats;
  const hn::RebindToSigned<decltype(floats)> integers;
  const hn::Rebind<T, decltype(floats)> stored;
  const std::size_t lanes = hn::Lanes(floats);
  const auto by = hn::Set(floats, static_cast<float>(divisor));
  T* const at = reinterpret_cast<T*>(data);
  std::size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const auto value = hn::ConvertTo(floats, hn::PromoteTo(integers, hn::LoadU(stored, at + i)));
    const auto quotient = hn::ConvertTo(integers, hn::Div(value, by));
    hn::StoreU(hn::DemoteTo(stored, quotient), stored, at + i);
  }
  divide_integers<T, std::uint32_t>(data + i * sizeof(T), elements - i, divisor);
}

/// Divides with one rounding (IEEE division), as Avg does with a sum.
template <typename Elements>
void divide_floating(std::byte* data, std::size_t elements, std::size_t divisor) {
  const std::byte* const source = data;
  fold_by<Elements, Avg, false>(Avg(divisor), data, &source, 1, elements);
}

/// Averages of integers. The second loop finds the sums in the cache, because a call covers a segment or a
/// slice.
template <typename T, typename Unsigned, typename Work>
void average_integers(std::byte* dst, const std::byte* const* srcs, std::size_t num_srcs,
                      std::size_t elements) {
  fold<Plain<Unsigned>, Sum, false>(dst, srcs, num_srcs, elements);
  if constexpr (sizeof(T) < 4) {
    divide_small_integers<T>(dst, elements, num_srcs);
  } else {
    divide_integers<T, Work>(dst, elements, num_srcs);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hips::reduce
