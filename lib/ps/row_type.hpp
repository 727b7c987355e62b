#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <hips/types.hpp>

namespace hips::ps {

/// The number of a row of a table.
using Key = std::uint64_t;

inline constexpr std::size_t kMostRowBytes = 1U << 20U;

/// What the rows of a table hold, and how a push changes one.
struct RowType {
  DataType type = DataType::kFloat32;
  std::uint32_t count = 1;           ///< elements of a row
  ReduceOp update = ReduceOp::kSum;  ///< sum, or a user-defined operation: row = update op row

  [[nodiscard]] std::size_t bytes() const;
  /// What is wrong with it; "" where nothing is.
  [[nodiscard]] std::string problem() const;
  /// Of rows in memory, as consecutive elements of malloc() have it; 8 or 16 bytes.
  [[nodiscard]] std::size_t alignment() const { return size_of(type) % 16 == 0 ? 16 : 8; }
  /// Changes a row by a pushed one. Both are aligned as elements, and apart.
  void apply(std::byte* row, const std::byte* pushed) const {
    // The usual rows are shorter than the set-up of the kernels for long vectors takes.
    if (update == ReduceOp::kSum && type == DataType::kFloat32) return add<float>(row, pushed);
    if (update == ReduceOp::kSum && type == DataType::kFloat64) return add<double>(row, pushed);
    fold(row, pushed);
  }

 private:
  template <typename T>
  void add(std::byte* row, const std::byte* pushed) const {
    // At -O2 GCC does not vectorize a loop of unknown length.
    using Vector [[gnu::vector_size(16), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
    constexpr std::size_t kElements = sizeof(Vector) / sizeof(T);
    auto* const to = reinterpret_cast<T*>(row);
    const auto* const from = reinterpret_cast<const T*>(pushed);
    const std::size_t num = count;
    std::size_t i = 0;
#pragma GCC unroll 4
    for (; i + kElements <= num; i += kElements)
      *reinterpret_cast<Vector*>(to + i) += *reinterpret_cast<const Vector*>(from + i);
    for (; i < num; ++i) to[i] += from[i];
  }
  void fold(std::byte* row, const std::byte* pushed) const;
};

/// Spreads keys evenly, whatever their pattern.
/// Source   the finalizer of SplitMix64.
constexpr std::uint64_t mixed(Key key) {
  std::uint64_t x = key + 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30U) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27U) * 0x94d049bb133111eb;
  return x ^ x >> 31U;
}

}  // namespace hips::ps
