#pragma once

#include <cstddef>
#include <cstdint>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

// Conversion between elements in memory and lanes of vectors. Included by kernels.cpp, once for each
// instruction set.
namespace hips::reduce {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Elements whose lanes have the same type.
template <typename T>
struct Plain {
  using Stored = T;
  using Lane = T;

  template <typename D>
  static auto load(D tag, const T* from) {
    return hn::LoadU(tag, from);
  }
  template <typename D, typename V>
  static void store(D tag, V lanes, T* to) {
    hn::StoreU(lanes, tag, to);
  }
  /// Stores four consecutive vectors. For kStream, `to` is aligned to a vector.
  template <bool kStream, typename D, typename V>
  static void store_four(D tag, V v0, V v1, V v2, V v3, T* to) {
    const std::size_t lanes = hn::Lanes(tag);
    if constexpr (kStream) {
      hn::Stream(v0, tag, to);
      hn::Stream(v1, tag, to + lanes);
      hn::Stream(v2, tag, to + 2 * lanes);
      hn::Stream(v3, tag, to + 3 * lanes);
    } else {
      hn::StoreU(v0, tag, to);
      hn::StoreU(v1, tag, to + lanes);
      hn::StoreU(v2, tag, to + 2 * lanes);
      hn::StoreU(v3, tag, to + 3 * lanes);
    }
  }
};

// From AVX2 on, instructions convert float16. Elsewhere, and for bfloat16, integer arithmetic does, with the
// same bits for every input. Highway's own fallbacks handle neither infinities nor ties.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
inline constexpr bool kConvertsFloat16 = true;
#else
inline constexpr bool kConvertsFloat16 = false;
#endif

/// Conversions of float16; `D` is a tag of float lanes. The algorithms are those of hips/half.hpp, which
/// proves them.
struct Float16Format {
  template <typename D, typename V16>
  static auto widen(D tag, V16 halves) {
    if constexpr (kConvertsFloat16) {
      return hn::PromoteTo(tag, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), halves));
    } else {
      const hn::RebindToUnsigned<D> bits;
      const hn::RebindToSigned<D> integers;
      const auto half = hn::PromoteTo(bits, halves);
      const auto rest = hn::And(half, hn::Set(bits, 0x7fffU));
      const auto sign = hn::ShiftLeft<16>(hn::Xor(half, rest));
      const auto count = hn::ConvertTo(tag, hn::BitCast(integers, rest));
      const auto subnormal = hn::BitCast(bits, hn::Mul(count, hn::Set(tag, 0x1p-24F)));
      const auto signed_rest = hn::BitCast(integers, rest);
      const auto beyond = [&](std::int32_t limit) {
        return hn::BitCast(bits, hn::VecFromMask(integers, hn::Gt(signed_rest, hn::Set(integers, limit))));
      };
      const auto bias = hn::Set(bits, 112U << 23U);
      auto normal = hn::Add(hn::ShiftLeft<13>(rest), bias);
      normal = hn::Add(normal, hn::And(beyond(0x7bff), bias));
      normal = hn::Or(normal, hn::And(beyond(0x7c00), hn::Set(bits, 0x400000U)));
      const auto is_normal = hn::MaskFromVec(beyond(0x03ff));
      return hn::BitCast(tag, hn::Or(hn::IfThenElse(is_normal, normal, subnormal), sign));
    }
  }

  template <typename D, typename V>
  static auto narrow(D tag, V floats) {
    const hn::Rebind<std::uint16_t, D> halves;
    if constexpr (kConvertsFloat16) {
      return hn::BitCast(halves, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), floats));
    } else {
      const hn::RebindToUnsigned<D> bits;
      const hn::RebindToSigned<D> integers;
      const auto value = hn::BitCast(bits, floats);
      const auto size = hn::And(value, hn::Set(bits, 0x7fffffffU));
      const auto sign = hn::ShiftRight<16>(hn::Xor(value, size));
      const auto signed_size = hn::BitCast(integers, size);
      const auto above = [&](std::int32_t limit) {
        return hn::MaskFromVec(
            hn::BitCast(bits, hn::VecFromMask(integers, hn::Gt(signed_size, hn::Set(integers, limit)))));
      };
      const auto half = hn::Set(tag, 0.5F);
      const auto subnormal =
          hn::Sub(hn::BitCast(bits, hn::Add(hn::BitCast(tag, size), half)), hn::BitCast(bits, half));
      const auto odd = hn::And(hn::ShiftRight<13>(size), hn::Set(bits, 1U));
      const auto normal =
          hn::ShiftRight<13>(hn::Add(hn::Sub(size, hn::Set(bits, (112U << 23U) - 0xfffU)), odd));
      const auto nan =
          hn::Or(hn::And(hn::ShiftRight<13>(size), hn::Set(bits, 0x3ffU)), hn::Set(bits, 0x7e00U));
      auto rest = hn::IfThenElse(above(0x387fffff), normal, subnormal);
      rest = hn::IfThenElse(above(0x477fffff), hn::Set(bits, 0x7c00U), rest);
      rest = hn::IfThenElse(above(0x7f800000), nan, rest);
      return hn::DemoteTo(halves, hn::BitCast(integers, hn::Or(rest, sign)));
    }
  }
};

/// Conversions of bfloat16.
struct Bfloat16Format {
  template <typename D, typename V16>
  static auto widen(D tag, V16 halves) {
    return hn::BitCast(tag, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), halves)));
  }

  template <typename D, typename V>
  static auto narrow(D /*tag*/, V floats) {
    const hn::RebindToUnsigned<D> bits;
    const hn::RebindToSigned<D> integers;
    const auto value = hn::BitCast(bits, floats);
    const auto upper = hn::ShiftRight<16>(value);
    const auto odd = hn::And(upper, hn::Set(bits, 1U));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(value, hn::Set(bits, 0x7fffU)), odd));
    // A float is not compared with itself, because the vectors' Ne() is an ordered comparison, false for NaN.
    const auto size = hn::BitCast(integers, hn::And(value, hn::Set(bits, 0x7fffffffU)));
    const auto beyond_infinity = hn::VecFromMask(integers, hn::Gt(size, hn::Set(integers, 0x7f800000)));
    const auto is_nan = hn::MaskFromVec(hn::BitCast(bits, beyond_infinity));
    const auto result = hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(bits, 0x40U)), rounded);
    return hn::DemoteTo(hn::Rebind<std::uint16_t, D>(), hn::BitCast(integers, result));
  }
};

/// Two bytes in memory, float in lanes: one pass over all sources rounds once.
template <typename Format>
struct Half {
  using Stored = std::uint16_t;
  using Lane = float;

  template <typename D>
  static auto load(D tag, const Stored* from) {
    return Format::widen(tag, hn::LoadU(hn::Rebind<Stored, D>(), from));
  }
  template <typename D, typename V>
  static void store(D tag, V lanes, Stored* to) {
    hn::StoreU(Format::narrow(tag, lanes), hn::Rebind<Stored, D>(), to);
  }
  template <bool kStream, typename D, typename V>
  static void store_four(D tag, V v0, V v1, V v2, V v3, Stored* to) {
    const std::size_t lanes = hn::Lanes(tag);
    if constexpr (kStream && HWY_TARGET != HWY_SCALAR) {
      // Two vectors of lanes make one vector of elements, and streaming stores need whole vectors. Combine is
      // found by argument-dependent lookup, because targets of one lane do not define it.
      const hn::Repartition<Stored, D> pair;
      hn::Stream(Combine(pair, Format::narrow(tag, v1), Format::narrow(tag, v0)), pair, to);
      hn::Stream(Combine(pair, Format::narrow(tag, v3), Format::narrow(tag, v2)), pair, to + 2 * lanes);
    } else {
      store(tag, v0, to);
      store(tag, v1, to + lanes);
      store(tag, v2, to + 2 * lanes);
      store(tag, v3, to + 3 * lanes);
    }
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hips::reduce
