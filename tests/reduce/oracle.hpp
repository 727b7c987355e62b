#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include <hips/half.hpp>
#include <hips/types.hpp>

namespace hips::reduce::test {

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

/// The value of a float16 or bfloat16, from the definition of the formats: sign, exponent, fraction.
template <typename T>
double worth(T half) {
  constexpr int kFraction = std::is_same_v<T, Float16> ? 10 : 7;
  constexpr int kExponents = 1 << (15 - kFraction), kBias = kExponents / 2 - 1;
  const int fraction = half.bits & ((1 << kFraction) - 1);
  const int exponent = half.bits >> kFraction & (kExponents - 1);
  double size = 0;
  if (exponent == kExponents - 1)
    size = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    size = std::ldexp(fraction, 1 - kBias - kFraction);
  else
    size = std::ldexp((1 << kFraction) + fraction, exponent - kBias - kFraction);
  return std::copysign(size, (half.bits & 0x8000) != 0 ? -1.0 : 1.0);
}

/// The nearest float16 or bfloat16, by search among all of them; of two equally near values the one with the
/// even fraction. It shares no arithmetic with the code under test.
template <typename T>
T nearest(float value) {
  static const std::vector<double> sizes = [] {
    std::vector<double> all;
    T half;
    for (; std::isfinite(worth(half)); ++half.bits) all.push_back(worth(half));
    return all;  // ascending, by bits
  }();
  T result;
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) {
    // A quiet NaN, with the upper bits of the payload.
    constexpr int kFraction = std::is_same_v<T, Float16> ? 10 : 7;
    const std::uint32_t payload =
        std::bit_cast<std::uint32_t>(value) >> (23 - kFraction) & ((1U << kFraction) - 1);
    const auto exponent = static_cast<std::uint32_t>(sizes.size());
    result.bits = static_cast<std::uint16_t>(sign | exponent | payload | 1U << (kFraction - 1));
    return result;
  }
  const double size = std::fabs(static_cast<double>(value));
  // From half a step above the largest value on, the result is infinity, which is even.
  const double step = sizes[sizes.size() - 1] - sizes[sizes.size() - 2];
  std::size_t bits = sizes.size();
  if (size < sizes.back() + step / 2) {
    bits = static_cast<std::size_t>(std::upper_bound(sizes.begin(), sizes.end(), size) - sizes.begin()) - 1;
    const double above = bits + 1 < sizes.size() ? sizes[bits + 1] : sizes.back() + step;
    const double down = size - sizes[bits], up = above - size;
    if (up < down || (up == down && bits % 2 == 1)) ++bits;
  }
  result.bits = static_cast<std::uint16_t>(sign | bits);
  return result;
}

/// Reduces one operand after the other, in the arithmetic of the language.
template <typename T>
T fold_one(ReduceOp op, std::span<const T> operands) {
  using Sum = std::conditional_t<kIsHalf<T>, float, T>;
  const auto value = [](T operand) {
    if constexpr (kIsHalf<T>)
      return static_cast<float>(worth(operand));
    else
      return operand;
  };
  const auto result_of = [](Sum result) {
    if constexpr (kIsHalf<T>)
      return nearest<T>(result);
    else
      return result;
  };
  Sum acc = value(operands[0]);
  const auto is_logical = op == ReduceOp::kLand || op == ReduceOp::kLor || op == ReduceOp::kLxor;
  if (is_logical) acc = static_cast<Sum>(acc != Sum{0} ? 1 : 0);
  for (const T operand : operands.subspan(1)) {
    const Sum next = value(operand);
    if constexpr (std::is_integral_v<T>) {
      const auto a = static_cast<std::uint64_t>(acc), b = static_cast<std::uint64_t>(next);
      switch (op) {
        case ReduceOp::kSum:
        case ReduceOp::kAvg:
          acc = static_cast<T>(a + b);
          break;
        case ReduceOp::kProd:
          acc = static_cast<T>(a * b);
          break;
        case ReduceOp::kMin:
          acc = std::min(acc, next);
          break;
        case ReduceOp::kMax:
          acc = std::max(acc, next);
          break;
        case ReduceOp::kBand:
          acc = static_cast<T>(a & b);
          break;
        case ReduceOp::kBor:
          acc = static_cast<T>(a | b);
          break;
        case ReduceOp::kBxor:
          acc = static_cast<T>(a ^ b);
          break;
        case ReduceOp::kLand:
          acc = static_cast<T>(acc != 0 && next != 0);
          break;
        case ReduceOp::kLor:
          acc = static_cast<T>(acc != 0 || next != 0);
          break;
        case ReduceOp::kLxor:
          acc = static_cast<T>((acc != 0) != (next != 0));
          break;
      }
    } else {
      if (op == ReduceOp::kProd)
        acc *= next;
      else if (op == ReduceOp::kMin)
        acc = std::min(acc, next);
      else if (op == ReduceOp::kMax)
        acc = std::max(acc, next);
      else
        acc += next;
    }
  }
  if (op == ReduceOp::kAvg) {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      acc = static_cast<T>(static_cast<std::int64_t>(acc) / static_cast<std::int64_t>(operands.size()));
    else if constexpr (std::is_integral_v<T>)
      acc = static_cast<T>(static_cast<std::uint64_t>(acc) / operands.size());
    else
      acc = acc / static_cast<Sum>(operands.size());
  }
  return result_of(acc);
}

/// A value that reveals errors: any bits for integers, and numbers of all sizes for floating types, including
/// zeros of both signs, infinities, subnormals and NaN.
template <typename T>
T any_value(std::mt19937_64& random) {
  const std::uint64_t bits = random();
  if constexpr (std::is_integral_v<T>) {
    if (bits >> 60 == 0) return T{0};
    if (bits >> 60 == 1) return std::numeric_limits<T>::min();
    if (bits >> 60 == 2) return std::numeric_limits<T>::max();
    return static_cast<T>(bits);
  } else if constexpr (kIsHalf<T>) {
    T half;
    half.bits = static_cast<std::uint16_t>(bits);
    // Half of the values are near one, where sums neither overflow nor vanish.
    if (bits >> 63 != 0) half = nearest<T>(static_cast<float>(static_cast<int>(bits % 2000) - 1000) / 70.0F);
    return half;
  } else {
    using Limits = std::numeric_limits<T>;
    switch (bits >> 60) {
      case 0:
        return (bits & 1) != 0 ? T{0} : -T{0};
      case 1:
        return (bits & 1) != 0 ? Limits::infinity() : -Limits::infinity();
      case 2:
        return Limits::denorm_min() * static_cast<T>(bits % 100);
      case 3:
        return Limits::quiet_NaN();
      default:
        return static_cast<T>(static_cast<int>(bits % 2000) - 1000) / 7;
    }
  }
}

/// Bitwise equality, except that all NaN are equal: the hardware chooses which of two NaN a sum returns.
template <typename T>
bool is_same(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a == b;
  else if constexpr (kIsHalf<T>)
    return a.bits == b.bits || (std::isnan(worth(a)) && std::isnan(worth(b)));
  else
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

}  // namespace hips::reduce::test
