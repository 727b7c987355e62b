#pragma once

#include <cstddef>
#include <cstdint>

#include <hips/export.hpp>

namespace hips {

/// Element types; the values are those of `hips_type_t` (hips.h).
///
/// float16 is IEEE 754's binary16, bfloat16 the upper half of a float32. Both are folded in float32: all
/// inputs of one pass are converted, folded and rounded once, to the nearest, ties to even.
enum class DataType : std::int32_t {
  kInt32 = 0,
  kInt64 = 1,
  kFloat32 = 2,
  kFloat64 = 3,
  kInt8 = 4,
  kInt16 = 5,
  kUint8 = 6,
  kUint16 = 7,
  kUint32 = 8,
  kUint64 = 9,
  kFloat16 = 10,
  kBfloat16 = 11,
};

/// Reductions; the values are those of `hips_op_t` (hips.h).
///
/// sum, prod  integers wrap: the result is right modulo 2 to the number of bits.
/// min, max   the first of two operands unless the second is strictly beyond it; so it is with NaN, too.
/// avg        the sum, divided once by the number of ranks. Integers: the wrapped sum, and the quotient
///            towards zero, as ncclAvg. Floating types: an IEEE division, rounded to the nearest.
/// band, bor, bxor, land, lor, lxor   integers only. Logical ones take 0 for false and all else for true,
///            and give 0 or 1.
enum class ReduceOp : std::int32_t {
  kSum = 0,
  kProd = 1,
  kMin = 2,
  kMax = 3,
  kAvg = 4,
  kBand = 5,
  kBor = 6,
  kBxor = 7,
  kLand = 8,
  kLor = 9,
  kLxor = 10,
};

inline constexpr int kNumDataTypes = 12;
inline constexpr int kNumReduceOps = 11;

/// Bytes of an element.
constexpr std::size_t size_of(DataType type) {
  constexpr std::size_t kBytes[kNumDataTypes] = {4, 8, 4, 8, 1, 2, 1, 2, 4, 8, 2, 2};
  return kBytes[static_cast<int>(type)];
}

constexpr bool is_floating(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64 || type == DataType::kFloat16 ||
         type == DataType::kBfloat16;
}

/// Does the operation exist for the type? Bitwise and logical ones do not for floating types.
constexpr bool applies_to(ReduceOp op, DataType type) {
  return op <= ReduceOp::kAvg || !is_floating(type);
}

/// "int32", "uint8", "float16", "bfloat16", ...; "unknown type" for a value that is none
HIPS_EXPORT const char* to_string(DataType type);
/// "sum", "avg", "band", "land", ...; "unknown op" for a value that is none
HIPS_EXPORT const char* to_string(ReduceOp op);

}  // namespace hips
