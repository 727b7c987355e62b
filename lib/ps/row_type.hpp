#pragma once

#include <cstddef>
#include <cstdint>

#include <hips/types.hpp>

namespace hips::ps {

/// The number of a row of a table.
using Key = std::uint64_t;

/// What the rows of a table hold, and how a push changes one.
struct RowType {
  DataType type = DataType::kFloat32;
  std::uint32_t count = 1;           ///< elements of a row
  ReduceOp update = ReduceOp::kSum;  ///< sum, or a user-defined operation: row = update op row

  [[nodiscard]] std::size_t bytes() const;
  /// Changes a row by a pushed one. Both are aligned as elements.
  void apply(std::byte* row, const std::byte* pushed) const;
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
