#pragma once

#include <cstddef>
#include <cstdint>

#include <hips/export.hpp>

namespace hips {

/// Element types; the values are those of `hips_type_t` (hips.h).
enum class DataType : std::int32_t { kInt32 = 0, kInt64 = 1, kFloat32 = 2, kFloat64 = 3 };

/// Reductions; the values are those of `hips_op_t` (hips.h).
enum class ReduceOp : std::int32_t { kSum = 0, kProd = 1, kMin = 2, kMax = 3 };

inline constexpr int kNumDataTypes = 4;
inline constexpr int kNumReduceOps = 4;

constexpr std::size_t size_of(DataType type) {
  return type == DataType::kInt32 || type == DataType::kFloat32 ? 4 : 8;
}

/// "int32", "float64", ...
HIPS_EXPORT const char* to_string(DataType type);
/// "sum", "prod", "min", "max"
HIPS_EXPORT const char* to_string(ReduceOp op);

}  // namespace hips
