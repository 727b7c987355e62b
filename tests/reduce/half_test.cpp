// Conversions of float16 and bfloat16: those of the public header, and those of the kernels of every
// instruction set.

#include <gtest/gtest.h>

#include <cstring>

#include "lib/reduce/reduce.hpp"
#include "tests/reduce/oracle.hpp"
#include "tests/reduce/tables.hpp"

namespace hips::reduce {
namespace {

template <typename T>
class Halves : public testing::Test {
 protected:
  static constexpr DataType kType = std::is_same_v<T, Float16> ? DataType::kFloat16 : DataType::kBfloat16;

  static std::vector<T> all() {
    std::vector<T> values(65536);
    for (std::size_t i = 0; i < values.size(); ++i) values[i].bits = static_cast<std::uint16_t>(i);
    return values;
  }

  /// Checks a op b with every instruction set against the oracle.
  static void check(ReduceOp op, const std::vector<T>& a, const std::vector<T>& b) {
    const std::byte* sources[] = {reinterpret_cast<const std::byte*>(a.data()),
                                  reinterpret_cast<const std::byte*>(b.data())};
    for (const KernelTable* table : test::tables()) {
      std::vector<T> out(a.size());
      table->fold.at(kType, op)(reinterpret_cast<std::byte*>(out.data()), sources, 2, a.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        const T operands[] = {a[i], b[i]};
        const T right = test::fold_one<T>(op, operands);
        ASSERT_TRUE(test::is_same(out[i], right))
            << to_string(op) << " of " << std::hex << a[i].bits << " and " << b[i].bits << " is "
            << out[i].bits << " instead of " << right.bits;
      }
    }
  }
};
using HalfTypes = testing::Types<Float16, Bfloat16>;
TYPED_TEST_SUITE(Halves, HalfTypes);

TYPED_TEST(Halves, every_value_converts_to_the_equal_float_and_back) {
  for (const TypeParam half : this->all()) {
    const auto value = static_cast<float>(half);
    const double worth = test::worth(half);
    if (std::isnan(worth)) {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_TRUE(std::isnan(test::worth(TypeParam(value))));
      ASSERT_EQ(TypeParam(value).bits >> 15, half.bits >> 15);
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), worth);
    ASSERT_EQ(std::signbit(value), std::signbit(worth));
    ASSERT_EQ(TypeParam(value).bits, half.bits);
  }
}

TYPED_TEST(Halves, floats_round_to_nearest_and_ties_to_even) {
  // Around each value: itself, half a step above, and the floats next to that, where rounding changes.
  std::vector<float> directed;
  for (const TypeParam half : this->all()) {
    TypeParam next = half;
    ++next.bits;
    const double a = test::worth(half), b = test::worth(next);
    if (!std::isfinite(a) || !std::isfinite(b) || std::signbit(a) != std::signbit(b)) continue;
    const auto tie = static_cast<float>((a + b) / 2);
    for (const float value :
         {static_cast<float>(a), tie, std::nextafterf(tie, 0), std::nextafterf(tie, tie * 2)})
      directed.push_back(value);
  }
  for (const float edge :
       {65504.0F, 65519.996F, 65520.0F, 65536.0F, 3.3895314e38F, 3.3961776e38F, 3.4028235e38F, 0x1p-14F,
        0x1p-24F, 0x1p-25F, 0x1.000002p-25F, 0x1p-126F, 0x1p-133F, 0x1p-134F, 0x1p-149F})
    directed.insert(directed.end(), {edge, -edge});
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 200000; ++i)
    directed.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (const float value : directed)
    ASSERT_EQ(TypeParam(value).bits, test::nearest<TypeParam>(value).bits) << std::hexfloat << value;
}

TYPED_TEST(Halves, kernels_convert_every_value_correctly) {
  // Adds zero, multiplies by one and compares with itself: every value is converted to lanes and back.
  const std::vector<TypeParam> all = this->all();
  std::vector<TypeParam> zeros(all.size()), ones(all.size(), TypeParam(1.0F));
  this->check(ReduceOp::kSum, all, zeros);
  this->check(ReduceOp::kProd, all, ones);
  this->check(ReduceOp::kMin, all, all);
  this->check(ReduceOp::kMax, all, all);
}

TYPED_TEST(Halves, kernels_round_ties_to_even_overflow_to_infinity_and_keep_subnormals) {
  // Multiplied by a power of two, values fall below the smallest normal and above the largest. With half a
  // step added, they tie.
  const std::vector<TypeParam> all = this->all();
  std::mt19937_64 random(test::seed());
  for (const float factor : hips::test::or_every_nth<float>(
           {0.5F, 0.25F, 0.75F, 2.0F, 3.0F, 0x1p-10F, 0x1p-13F, 0x1p13F, 1.5F}, 4))
    this->check(ReduceOp::kProd, all, std::vector<TypeParam>(all.size(), TypeParam(factor)));
  for (int trial = 0; trial < (test::runs_a_sample() ? 1 : 8); ++trial) {
    std::vector<TypeParam> others = all;
    for (TypeParam& other : others) {
      // The operands are close in size, so the sum has a few bits too many.
      const int distance = static_cast<int>(random() % 13) << (std::is_same_v<TypeParam, Float16> ? 10 : 7);
      other.bits = static_cast<std::uint16_t>((other.bits ^ (random() & 0x807f)) - distance);
    }
    this->check(ReduceOp::kSum, all, others);
    this->check(ReduceOp::kAvg, all, others);
  }
}

TYPED_TEST(Halves, kernels_round_many_inputs_once) {
  // One, plus 16 times 2^-12 (float16; 2^-9 for bfloat16). Each addend alone is too small to change one.
  const float small = std::is_same_v<TypeParam, Float16> ? 0x1p-12F : 0x1p-9F;
  std::vector<TypeParam> one(100, TypeParam(1.0F)), little(100, TypeParam(small)), out(100);
  std::vector<const std::byte*> sources(17, reinterpret_cast<const std::byte*>(little.data()));
  sources[0] = reinterpret_cast<const std::byte*>(one.data());
  fold(this->kType, ReduceOp::kSum, reinterpret_cast<std::byte*>(out.data()), sources, 100);
  for (const TypeParam value : out) ASSERT_EQ(static_cast<float>(value), 1.0F + 16 * small);
}

TEST(HalvesOfEveryInstructionSet, convert_nan_to_the_same_bits) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    std::vector<std::uint16_t> all(65536), reference(all.size()), ones(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = static_cast<std::uint16_t>(i);
      ones[i] = type == DataType::kFloat16 ? 0x3c00 : 0x3f80;
    }
    const std::byte* sources[] = {reinterpret_cast<const std::byte*>(all.data()),
                                  reinterpret_cast<const std::byte*>(ones.data())};
    for (const ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kAvg}) {
      bool first = true;
      for (const KernelTable* table : test::tables()) {
        std::vector<std::uint16_t> out(all.size());
        table->fold.at(type, op)(reinterpret_cast<std::byte*>(out.data()), sources, 2, all.size());
        if (first) reference = out;
        first = false;
        for (std::size_t i = 0; i < all.size(); ++i)
          ASSERT_EQ(out[i], reference[i]) << to_string(type) << " " << to_string(op) << " of " << all[i];
      }
    }
  }
}

}  // namespace
}  // namespace hips::reduce
