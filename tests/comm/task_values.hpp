#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include <hips/hips.hpp>

#include "tests/comm/allreduce_check.hpp"

// Inputs and expected outputs of collective calls in tests: numbers with an operation of the library, or
// structures with a user function.
namespace hips::test {

/// Numbers with an operation of the library.
template <typename T>
struct Numbers {
  using Element = T;
  ReduceOp op = ReduceOp::kSum;

  [[nodiscard]] hips_type_t type() const { return static_cast<hips_type_t>(data_type_of<T>()); }
  [[nodiscard]] hips_op_t handle() const { return static_cast<hips_op_t>(op); }
  [[nodiscard]] T given(Rank rank, std::size_t i) const { return operand<T>(op, rank, i); }
  [[nodiscard]] T reduced(Rank size, std::size_t i) const { return expected<T>(op, size, i); }
  [[nodiscard]] static T guard() { return element<T>(77); }
  [[nodiscard]] static std::string number(T value) {
    return std::to_string(static_cast<double>(static_cast<Widened<T>>(value)));
  }
  [[nodiscard]] std::string text() const {
    return std::string(to_string(data_type_of<T>())) + " " + to_string(op);
  }
};

/// User functions, each with its element type; any() draws an element. All are associative.

/// Product of 2x2 matrices modulo a prime: does not commute.
struct MatrixProduct {
  struct Element {
    std::array<std::uint32_t, 4> of;
  };
  static constexpr const char* kName = "product of matrices";
  static constexpr UserOrder kOrder = UserOrder::kOrdered;
  static Element any(std::uint64_t mix) {
    const auto digit = [&](int shift) { return static_cast<std::uint32_t>(mix >> shift) % kPrime; };
    return {{digit(0), digit(7), digit(20), digit(31)}};
  }
  static Element combine(const Element& a, const Element& b) {
    const auto sum = [](std::uint64_t w, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
      return static_cast<std::uint32_t>((w * x + y * z) % kPrime);
    };
    return {{sum(a.of[0], b.of[0], a.of[1], b.of[2]), sum(a.of[0], b.of[1], a.of[1], b.of[3]),
             sum(a.of[2], b.of[0], a.of[3], b.of[2]), sum(a.of[2], b.of[1], a.of[3], b.of[3])}};
  }

 private:
  static constexpr std::uint32_t kPrime = 1'000'003;
};

/// Composition of kPairs functions x -> a*x + b modulo 2^32: does not commute, and has any size.
template <std::size_t kPairs>
struct AffineMaps {
  struct Element {
    std::array<std::uint32_t, 2 * kPairs> of;
  };
  static constexpr const char* kName = "composition of maps";
  static constexpr UserOrder kOrder = UserOrder::kOrdered;
  static Element any(std::uint64_t mix) {
    Element made;
    for (std::uint32_t& one : made.of)
      one = static_cast<std::uint32_t>(mix = mix * 6364136223846793005U + 1) | 1;
    return made;
  }
  static Element combine(const Element& f, const Element& g) {
    Element both;
    for (std::size_t i = 0; i < 2 * kPairs; i += 2) {
      both.of[i] = f.of[i] * g.of[i];
      both.of[i + 1] = f.of[i] * g.of[i + 1] + f.of[i + 1];
    }
    return both;
  }
};

/// The last text that is not empty: does not commute. Its size divides neither cache line nor page.
struct LastText {
  struct Element {
    std::array<char, 13> of;
  };
  static constexpr const char* kName = "last text";
  static constexpr UserOrder kOrder = UserOrder::kOrdered;
  static Element any(std::uint64_t mix) {
    Element made{};
    for (std::size_t i = 0; mix % 3 != 0 && i < 12; ++i)
      made.of[i] = static_cast<char>('a' + mix / 3 % (17 + i));
    return made;
  }
  static Element combine(const Element& a, const Element& b) { return b.of[0] == 0 ? a : b; }
};

/// Sums of points: commutes, so any plan can be used.
struct PointSum {
  struct Element {
    std::array<std::int32_t, 3> of;
  };
  static constexpr const char* kName = "sum of points";
  static constexpr UserOrder kOrder = UserOrder::kCommutes;
  static Element any(std::uint64_t mix) {
    const auto at = [&](int shift) { return static_cast<std::int32_t>(mix >> shift & 0xffff); };
    return {{at(0), at(9), at(23)}};
  }
  static Element combine(const Element& a, const Element& b) {
    return {{a.of[0] + b.of[0], a.of[1] + b.of[1], a.of[2] + b.of[2]}};
  }
};

/// A function on a type of the library: multiplication modulo 251, which commutes.
struct ByteProduct {
  using Element = std::uint8_t;
  static constexpr const char* kName = "product of bytes";
  static constexpr UserOrder kOrder = UserOrder::kCommutes;
  static Element any(std::uint64_t mix) { return static_cast<Element>(mix % 250 + 1); }
  static Element combine(Element a, Element b) { return static_cast<Element>(a * b % 251); }
};

/// The later of two half-precision numbers, which the function gets unconverted: does not commute.
struct LaterHalf {
  using Element = Float16;
  static constexpr const char* kName = "later half";
  static constexpr UserOrder kOrder = UserOrder::kOrdered;
  static Element any(std::uint64_t mix) { return Float16(static_cast<float>(mix % 2000)); }
  static Element combine(Element /*a*/, Element b) { return b; }
};

/// The elements of a function with its op, which has to live longer.
template <typename Function>
struct FunctionValues {
  using Element = typename Function::Element;
  hips_op_t op = HIPS_OP_NULL;

  static UserOp<Element> make_op() { return UserOp<Element>(Function::combine, Function::kOrder); }
  [[nodiscard]] hips_type_t type() const {
    if constexpr (hips::Element<Element>) return static_cast<hips_type_t>(data_type_of<Element>());
    return HIPS_BYTES(sizeof(Element));
  }
  [[nodiscard]] hips_op_t handle() const { return op; }
  [[nodiscard]] Element given(Rank rank, std::size_t i) const {
    std::uint64_t mix = (static_cast<std::uint64_t>(rank) << 40U) + i + 1;
    mix *= 0x9e3779b97f4a7c15U;
    return Function::any((mix ^ mix >> 29U) * 0xbf58476d1ce4e5b9U >> 7U);
  }
  [[nodiscard]] Element reduced(Rank size, std::size_t i) const {
    Element result = given(0, i);
    for (Rank r = 1; r < size; ++r) result = Function::combine(result, given(r, i));
    return result;
  }
  [[nodiscard]] static Element guard() { return Function::any(7777); }
  [[nodiscard]] static std::string number(const Element& value) {
    std::string digits;
    for (const unsigned char byte : std::bit_cast<std::array<unsigned char, sizeof(Element)>>(value))
      digits += (digits.empty() ? "" : ".") + std::to_string(byte);
    return digits;
  }
  [[nodiscard]] static std::string text() { return Function::kName; }
};

}  // namespace hips::test
