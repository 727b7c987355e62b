#pragma once

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

// The operations on vectors. Included by kernels.cpp, once for each instruction set.
namespace hips::reduce {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// An operation is constructed for a number of operands. enter() converts each loaded operand, combine()
/// reduces two, and leave() makes the result of the last combine(). All work elementwise.
struct Op {
  explicit Op(std::size_t /*num_operands*/) {}
  template <typename D, typename V>
  V enter(D, V operand) const {
    return operand;
  }
  template <typename D, typename V>
  V leave(D, V folded) const {
    return folded;
  }
};

// Integer sums and products wrap. They are computed on unsigned lanes: the bits are equal, and there is no
// undefined overflow.
struct Sum : Op {
  using Op::Op;
  template <typename D, typename V>
  V combine(D, V a, V b) const {
    return hn::Add(a, b);
  }
};

struct Prod : Op {
  using Op::Op;
  template <typename D, typename V>
  V combine(D tag, V a, V b) const {
    using T = hn::TFromD<D>;
    if constexpr (HWY_TARGET == HWY_SCALAR && !hwy::IsFloat<T>()) {
      return hn::Set(tag, static_cast<T>(std::uint64_t{hn::GetLane(a)} * hn::GetLane(b)));
    } else if constexpr (sizeof(T) == 1) {
      // No instruction multiplies bytes, so even and odd bytes are multiplied in 16-bit lanes.
      const hn::RepartitionToWide<D> wide;
      const auto a2 = hn::BitCast(wide, a), b2 = hn::BitCast(wide, b);
      const auto low = hn::Set(wide, std::uint16_t{0xff});
      const auto even = hn::And(hn::Mul(a2, b2), low);
      const auto odd = hn::Mul(hn::AndNot(low, a2), hn::ShiftRight<8>(b2));
      return hn::BitCast(tag, hn::Or(even, odd));
    } else if constexpr (sizeof(T) == 8 && !hwy::IsFloat<T>()) {
      // Before AVX-512, no instruction multiplies 64 bits: add the full product of the low halves and the
      // mixed products, modulo 2^64.
      const hn::Repartition<std::uint32_t, D> narrow;
      const auto swapped = hn::Or(hn::ShiftLeft<32>(b), hn::ShiftRight<32>(b));
      const auto mixed = hn::BitCast(tag, hn::Mul(hn::BitCast(narrow, a), hn::BitCast(narrow, swapped)));
      const auto upper = hn::ShiftLeft<32>(hn::Add(mixed, hn::ShiftRight<32>(mixed)));
      return hn::Add(hn::MulEven(hn::BitCast(narrow, a), hn::BitCast(narrow, b)), upper);
    } else {
      return hn::Mul(a, b);
    }
  }
};

// As std::min and std::max: the first operand, unless the second is strictly beyond it. The minimum
// instruction for floats treats NaN and signed zero differently on different instruction sets.
struct Min : Op {
  using Op::Op;
  template <typename D, typename V>
  V combine(D, V a, V b) const {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::IfThenElse(hn::Lt(b, a), b, a);
    } else {
      return hn::Min(a, b);
    }
  }
};
struct Max : Op {
  using Op::Op;
  template <typename D, typename V>
  V combine(D, V a, V b) const {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::IfThenElse(hn::Lt(a, b), b, a);
    } else {
      return hn::Max(a, b);
    }
  }
};

/// For float lanes. It divides instead of multiplying by the reciprocal, so the result is correctly rounded.
struct Avg : Sum {
  explicit Avg(std::size_t num_operands) : Sum(num_operands), divisor(num_operands) {}
  template <typename D, typename V>
  V leave(D tag, V sum) const {
    return hn::Div(sum, hn::Set(tag, static_cast<hn::TFromD<D>>(divisor)));
  }
  std::size_t divisor;
};

struct Band : Op {
  using Op::Op;
  template <typename D, typename V>
  V combine(D, V a, V b) const {
    return hn::And(a, b);
  }
};
struct Bor : Op {
  using Op::Op;
  template <typename D, typename V>
  V combine(D, V a, V b) const {
    return hn::Or(a, b);
  }
};
struct Bxor : Op {
  using Op::Op;
  template <typename D, typename V>
  V combine(D, V a, V b) const {
    return hn::Xor(a, b);
  }
};

template <typename D, typename V>
V all_ones_where_zero(D tag, V operand) {
  return hn::VecFromMask(tag, hn::Eq(operand, hn::Zero(tag)));
}

/// False if any operand is false; computed as "any operand is zero".
struct Land : Bor {
  using Bor::Bor;
  template <typename D, typename V>
  V enter(D tag, V operand) const {
    return all_ones_where_zero(tag, operand);
  }
  template <typename D, typename V>
  V leave(D tag, V any_zero) const {
    return hn::AndNot(any_zero, hn::Set(tag, hn::TFromD<D>{1}));
  }
};
/// True if any operand is true: the OR of all bits is not zero.
struct Lor : Bor {
  using Bor::Bor;
  template <typename D, typename V>
  V leave(D tag, V bits) const {
    return hn::AndNot(all_ones_where_zero(tag, bits), hn::Set(tag, hn::TFromD<D>{1}));
  }
};
struct Lxor : Bxor {
  using Bxor::Bxor;
  template <typename D, typename V>
  V enter(D tag, V operand) const {
    return hn::AndNot(all_ones_where_zero(tag, operand), hn::Set(tag, hn::TFromD<D>{1}));
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hips::reduce
