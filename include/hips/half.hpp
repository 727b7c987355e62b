#pragma once

#include <bit>
#include <cstdint>

namespace hips {

/// An element of DataType::kFloat16: binary16 of IEEE 754, the format of __half and _Float16. It has storage and
/// conversions only. A buffer of any type with this layout may be passed as Float16.
///
/// From float: rounded to nearest, ties to even; overflow gives infinity; NaN becomes a quiet NaN. To float:
/// exact.
struct Float16 {
  std::uint16_t bits = 0;

  constexpr Float16() = default;
  constexpr explicit Float16(float value) : bits(from(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit operator float() const {
    const std::uint32_t sign = (bits & 0x8000U) << 16U, rest = bits & 0x7fffU;
    if (rest < 0x0400U) {  // zero and subnormals: a count of 2^-24
      const float size = static_cast<float>(rest) * 0x1p-24F;
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
    }
    const std::uint32_t bias = rest < 0x7c00U ? 112U << 23U : 224U << 23U;
    const std::uint32_t quiet = rest > 0x7c00U ? 0x400000U : 0;
    return std::bit_cast<float>((sign | quiet) | ((rest << 13U) + bias));
  }

 private:
  static constexpr std::uint16_t from(std::uint32_t value) {
    const std::uint32_t sign = value >> 16U & 0x8000U, size = value & 0x7fffffffU;
    std::uint32_t rest = 0x7c00U;
    if (size > 0x7f800000U) {
      rest = 0x7e00U | (size >> 13U & 0x3ffU);
    } else if (size < 0x38800000U) {
      // Below 2^-14 the spacing is 2^-24, the same as of floats in [0.5, 1): adding 0.5 rounds to it.
      rest = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
    } else if (size < 0x47800000U) {
      rest = (size - (112U << 23U) + 0xfffU + (size >> 13U & 1U)) >> 13U;
    }
    return static_cast<std::uint16_t>(sign | rest);
  }
};

/// An element of DataType::kBfloat16: the upper 16 bits of a float. Conversions as those of Float16.
struct Bfloat16 {
  std::uint16_t bits = 0;

  constexpr Bfloat16() = default;
  constexpr explicit Bfloat16(float value) : bits(from(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  }

 private:
  static constexpr std::uint16_t from(std::uint32_t value) {
    const bool is_nan = (value & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = value + 0x7fffU + (value >> 16U & 1U);
    return static_cast<std::uint16_t>(is_nan ? value >> 16U | 0x40U : rounded >> 16U);
  }
};

}  // namespace hips
