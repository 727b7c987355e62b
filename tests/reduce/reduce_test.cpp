#include "lib/reduce/reduce.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/reduce/oracle.hpp"
#include "tests/reduce/tables.hpp"

namespace hips::reduce {
namespace {

constexpr ReduceOp op_at(int value) {
  return static_cast<ReduceOp>(value);
}

template <typename T>
constexpr DataType type_of() {
  if constexpr (std::is_same_v<T, std::int8_t>) return DataType::kInt8;
  if constexpr (std::is_same_v<T, std::int16_t>) return DataType::kInt16;
  if constexpr (std::is_same_v<T, std::int32_t>) return DataType::kInt32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DataType::kInt64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DataType::kUint8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return DataType::kUint16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DataType::kUint32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return DataType::kUint64;
  if constexpr (std::is_same_v<T, Float16>) return DataType::kFloat16;
  if constexpr (std::is_same_v<T, Bfloat16>) return DataType::kBfloat16;
  if constexpr (std::is_same_v<T, float>) return DataType::kFloat32;
  return DataType::kFloat64;
}

/// `count` elements at a given distance in bytes from an aligned address, followed by a guard.
template <typename T>
class Buffer {
 public:
  Buffer(std::size_t count, std::size_t offset)
      : count_(count), offset_(offset), bytes_(room(), std::byte{42}) {}

  [[nodiscard]] std::byte* data() { return bytes_.data() + offset_; }
  [[nodiscard]] const std::byte* data() const { return bytes_.data() + offset_; }
  [[nodiscard]] T at(std::size_t i) const {
    T value;
    std::memcpy(&value, data() + i * sizeof(T), sizeof(T));
    return value;
  }
  void set(std::size_t i, T value) { std::memcpy(data() + i * sizeof(T), &value, sizeof(T)); }
  [[nodiscard]] bool guarded() const {
    return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset_), is_guard) &&
           std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(offset_ + count_ * sizeof(T)),
                       bytes_.end(), is_guard);
  }

 private:
  static bool is_guard(std::byte byte) { return byte == std::byte{42}; }
  [[nodiscard]] std::size_t room() const { return offset_ + count_ * sizeof(T) + 64; }

  std::size_t count_, offset_;
  std::vector<std::byte> bytes_;
};

template <typename T>
class Fold : public testing::Test {};
using Types = testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                             std::uint16_t, std::uint32_t, std::uint64_t, Float16, Bfloat16, float, double>;
TYPED_TEST_SUITE(Fold, Types);

TYPED_TEST(Fold, folds_left_to_right_for_every_length_number_of_sources_and_alignment) {
  std::mt19937_64 random(test::seed());
  for (int o = 0; o < kNumReduceOps; ++o) {
    const ReduceOp op = op_at(o);
    if (!applies_to(op, type_of<TypeParam>())) continue;
    for (const std::size_t elements :
         {0u, 1u, 2u, 3u, 4u, 7u, 15u, 16u, 17u, 31u, 63u, 64u, 65u, 127u, 257u, 1000u}) {
      for (const std::size_t num_srcs : {1u, 2u, 3u, 4u, 9u}) {
        // Elements are aligned, vectors are not.
        const auto offset = [&] { return random() % 16 * sizeof(TypeParam); };
        std::vector<Buffer<TypeParam>> srcs;
        std::vector<const std::byte*> pointers;
        for (std::size_t s = 0; s < num_srcs; ++s) {
          srcs.emplace_back(elements, offset());
          for (std::size_t i = 0; i < elements; ++i) srcs[s].set(i, test::any_value<TypeParam>(random));
        }
        for (const auto& src : srcs) pointers.push_back(src.data());
        std::vector<TypeParam> expected(elements), operands(num_srcs);
        for (std::size_t i = 0; i < elements; ++i) {
          for (std::size_t s = 0; s < num_srcs; ++s) operands[s] = srcs[s].at(i);
          expected[i] = test::fold_one<TypeParam>(op, operands);
        }
        const auto check = [&](const Buffer<TypeParam>& out, const char* how) {
          EXPECT_TRUE(out.guarded()) << "wrote past the end";
          for (std::size_t i = 0; i < elements; ++i)
            ASSERT_TRUE(test::is_same(out.at(i), expected[i]))
                << to_string(op) << how << ", element " << i << " of " << elements << ", " << num_srcs
                << " sources";
        };
        Buffer<TypeParam> out(elements, offset()), streamed(elements, offset());
        fold(type_of<TypeParam>(), op, out.data(), pointers, elements);
        check(out, "");
        fold_streaming(type_of<TypeParam>(), op, streamed.data(), pointers, elements);
        check(streamed, ", past the caches");
        // In place: dst is one of the sources.
        auto& target = srcs[random() % num_srcs];
        fold(type_of<TypeParam>(), op, target.data(), pointers, elements);
        check(target, ", in place");
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TYPED_TEST(Fold, averages_equal_partial_sums_divided_once) {
  // As on ranks that each have a part of the contributions.
  std::mt19937_64 random(test::seed());
  constexpr std::size_t kElements = 1003;
  for (const std::size_t divisor : {1u, 2u, 3u, 7u, 9u, 64u, 255u, 256u, 1000u, 65537u, 2147483647u}) {
    Buffer<TypeParam> data(kElements, random() % 16 * sizeof(TypeParam));
    std::vector<TypeParam> expected(kElements);
    for (std::size_t i = 0; i < kElements; ++i) {
      const auto value = test::any_value<TypeParam>(random);
      data.set(i, value);
      if constexpr (std::is_integral_v<TypeParam> && std::is_signed_v<TypeParam>)
        expected[i] =
            static_cast<TypeParam>(static_cast<std::int64_t>(value) / static_cast<std::int64_t>(divisor));
      else if constexpr (std::is_integral_v<TypeParam>)
        expected[i] = static_cast<TypeParam>(static_cast<std::uint64_t>(value) / divisor);
      else if constexpr (test::kIsHalf<TypeParam>)
        expected[i] =
            test::nearest<TypeParam>(static_cast<float>(test::worth(value)) / static_cast<float>(divisor));
      else
        expected[i] = value / static_cast<TypeParam>(divisor);
    }
    divide(type_of<TypeParam>(), data.data(), kElements, divisor);
    ASSERT_TRUE(data.guarded());
    for (std::size_t i = 0; i < kElements; ++i)
      ASSERT_TRUE(test::is_same(data.at(i), expected[i])) << "element " << i << " by " << divisor;
  }
}

TEST(Copy, streaming_copies_every_length_and_alignment) {
  std::mt19937_64 random(test::seed());
  std::vector<std::byte> from(3000);
  for (auto& value : from) value = static_cast<std::byte>(random());
  for (std::size_t bytes = 0; bytes < 2500; bytes += 1 + random() % 40) {
    const std::size_t at = random() % 130, to = random() % 130;
    std::vector<std::byte> out(3000, std::byte{42}), expected = out;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(to));
    copy_streaming(out.data() + to, from.data() + at, bytes);
    ASSERT_EQ(out, expected) << bytes << " bytes from " << at << " to " << to;
  }
}

TEST(Kernels, exist_for_every_operation_that_applies_to_the_type) {
  for (const KernelTable* table : test::tables()) {
    for (int t = 0; t < kNumDataTypes; ++t) {
      const auto type = static_cast<DataType>(t);
      EXPECT_NE(table->divide[t], nullptr);
      for (int o = 0; o < kNumReduceOps; ++o) {
        EXPECT_EQ(table->fold.at(type, op_at(o)) != nullptr, applies_to(op_at(o), type));
        EXPECT_EQ(table->fold_streaming.at(type, op_at(o)) != nullptr, applies_to(op_at(o), type));
      }
    }
  }
}

TYPED_TEST(Fold, gives_equal_bits_with_all_instruction_sets_also_for_nan_and_signed_zero) {
  std::mt19937_64 random(test::seed());
  constexpr std::size_t kElements = 1027;
  std::vector<std::vector<TypeParam>> srcs(3, std::vector<TypeParam>(kElements));
  std::vector<const std::byte*> pointers;
  for (auto& src : srcs) {
    for (auto& value : src) value = test::any_value<TypeParam>(random);
    pointers.push_back(reinterpret_cast<const std::byte*>(src.data()));
  }
  constexpr DataType kType = type_of<TypeParam>();
  for (int o = 0; o < kNumReduceOps; ++o) {
    if (!applies_to(op_at(o), kType)) continue;
    std::vector<std::byte> reference;
    for (const KernelTable* table : test::tables()) {
      std::vector<std::byte> out(kElements * sizeof(TypeParam));
      table->fold.at(kType, op_at(o))(out.data(), pointers.data(), 3, kElements);
      if (reference.empty()) reference = out;
      ASSERT_EQ(out, reference) << to_string(op_at(o));
      table->fold_streaming.at(kType, op_at(o))(out.data(), pointers.data(), 3, kElements);
      ASSERT_EQ(out, reference) << to_string(op_at(o)) << ", streaming";
    }
  }
}

}  // namespace
}  // namespace hips::reduce
