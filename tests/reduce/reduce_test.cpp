#include "lib/reduce/reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "lib/reduce/kernels.hpp"

namespace hips::reduce {
namespace {

std::uint64_t seed() {
  const char* text = std::getenv("HIPS_SEED");
  const std::uint64_t value = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  std::printf("HIPS_SEED=%llu\n", static_cast<unsigned long long>(value));
  return value;
}

template <typename T>
T apply(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (op == ReduceOp::kSum) return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    if (op == ReduceOp::kProd) return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  } else {
    if (op == ReduceOp::kSum) return a + b;
    if (op == ReduceOp::kProd) return a * b;
  }
  return op == ReduceOp::kMin ? std::min(a, b) : std::max(a, b);
}

template <typename T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

template <typename T>
class Fold : public testing::Test {};
using Types = testing::Types<std::int32_t, std::int64_t, float, double>;
TYPED_TEST_SUITE(Fold, Types);

template <typename T>
constexpr DataType type_of() {
  if constexpr (std::is_same_v<T, std::int32_t>) return DataType::kInt32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DataType::kInt64;
  if constexpr (std::is_same_v<T, float>) return DataType::kFloat32;
  return DataType::kFloat64;
}

TYPED_TEST(Fold, folds_left_to_right_for_every_length_number_of_sources_and_alignment) {
  std::mt19937_64 random(seed());
  for (int op = 0; op < kNumReduceOps; ++op) {
    for (std::size_t elements : {0u, 1u, 2u, 3u, 7u, 15u, 16u, 17u, 31u, 63u, 64u, 65u, 127u, 257u, 1000u}) {
      for (std::size_t num_srcs : {1u, 2u, 3u, 5u, 9u}) {
        const std::size_t offset = random() % 3;
        std::vector<std::vector<TypeParam>> srcs(num_srcs);
        std::vector<const std::byte*> pointers;
        for (auto& src : srcs) {
          src.resize(elements + offset);
          for (auto& value : src) {
            value = std::bit_cast<TypeParam>(
                static_cast<std::conditional_t<sizeof(TypeParam) == 4, std::uint32_t, std::uint64_t>>(
                    random()));
            if constexpr (std::is_floating_point_v<TypeParam>) {
              value = static_cast<TypeParam>(static_cast<int>(random() % 2000) - 1000) / 7;
            }
          }
          pointers.push_back(reinterpret_cast<const std::byte*>(src.data() + offset));
        }
        std::vector<TypeParam> expected(elements);
        for (std::size_t i = 0; i < elements; ++i) {
          expected[i] = srcs[0][i + offset];
          for (std::size_t s = 1; s < num_srcs; ++s) {
            expected[i] = apply(static_cast<ReduceOp>(op), expected[i], srcs[s][i + offset]);
          }
        }
        std::vector<TypeParam> out(elements + 1, TypeParam{42});
        fold(type_of<TypeParam>(), static_cast<ReduceOp>(op), reinterpret_cast<std::byte*>(out.data()),
             pointers, elements);
        ASSERT_TRUE(same_bits<TypeParam>(std::span(out).first(elements), expected))
            << "op " << op << " elements " << elements << " sources " << num_srcs;
        ASSERT_EQ(out[elements], TypeParam{42}) << "wrote past the end";
        // Past the caches, at every alignment.
        std::vector<TypeParam> streamed(elements + offset + 1, TypeParam{42});
        fold_streaming(type_of<TypeParam>(), static_cast<ReduceOp>(op),
                       reinterpret_cast<std::byte*>(streamed.data() + offset), pointers, elements);
        ASSERT_TRUE(same_bits<TypeParam>(std::span(streamed).subspan(offset, elements), expected));
        ASSERT_EQ(streamed[elements + offset], TypeParam{42}) << "wrote past the end";
        // In place: dst is the last source.
        if (num_srcs > 1) {
          auto* dst = reinterpret_cast<std::byte*>(srcs.back().data() + offset);
          fold(type_of<TypeParam>(), static_cast<ReduceOp>(op), dst, pointers, elements);
          ASSERT_TRUE(same_bits<TypeParam>(std::span(srcs.back()).subspan(offset), expected));
        }
      }
    }
  }
}

TEST(Copy, past_the_caches_is_a_copy_at_every_length_and_alignment) {
  std::mt19937_64 random(seed());
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

TEST(Kernels, all_instruction_sets_of_this_machine_give_the_same_bits_nan_and_signed_zero_included) {
  std::vector<const KernelTable*> tables = {kernels_baseline()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) tables.push_back(kernels_avx2());
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    tables.push_back(kernels_avx512());
  }
#endif
  std::mt19937_64 random(seed());
  const std::size_t elements = 1027;
  std::vector<std::vector<float>> srcs(3, std::vector<float>(elements));
  std::vector<const std::byte*> pointers;
  for (auto& src : srcs) {
    for (auto& value : src) {
      switch (random() % 6) {
        case 0:
          value = std::numeric_limits<float>::quiet_NaN();
          break;
        case 1:
          value = -0.0F;
          break;
        case 2:
          value = 0.0F;
          break;
        case 3:
          value = std::numeric_limits<float>::infinity();
          break;
        default:
          value = static_cast<float>(random()) * 1e-9F;
      }
    }
    pointers.push_back(reinterpret_cast<const std::byte*>(src.data()));
  }
  for (int op = 0; op < kNumReduceOps; ++op) {
    std::vector<float> reference(elements);
    tables[0]->fold.of[2][op](reinterpret_cast<std::byte*>(reference.data()), pointers.data(), 3, elements);
    for (const auto* table : tables) {
      std::vector<float> out(elements);
      table->fold.of[2][op](reinterpret_cast<std::byte*>(out.data()), pointers.data(), 3, elements);
      ASSERT_EQ(0, std::memcmp(out.data(), reference.data(), elements * sizeof(float))) << "op " << op;
    }
  }
}

}  // namespace
}  // namespace hips::reduce
