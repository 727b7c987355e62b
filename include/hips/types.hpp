#pragma once

#include <cstddef>
#include <cstdint>

#include <hips/export.hpp>

namespace hips {

/// Element types; the values are those of `hips_type_t` (hips.h).
///
/// float16 is binary16 of IEEE 754, bfloat16 the upper half of a float32. Both are reduced in float32: all
/// inputs of one pass are converted, reduced and rounded once, to nearest even.
///
/// Besides these there are bytes_type(1), bytes_type(2), ...: elements of so many bytes, which only a UserOp
/// (user_op.hpp) can reduce.
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
/// min, max   the first of two operands unless the second compares less, or greater; NaN compares neither.
/// avg        the sum, divided once by the number of ranks. Integers: the wrapped sum, and the quotient
///            rounded towards zero, as ncclAvg. Floating types: an IEEE division, rounded to nearest.
/// band, bor, bxor, land, lor, lxor   integers only. Logical ones take 0 for false and any other
///            value for true, and give 0 or 1.
///
/// Besides these there are user-defined operations, for as long as the program keeps them: user_op.hpp.
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

/// Bytes of the largest element: one has to fit into every segment, however little staging there is.
inline constexpr std::size_t kMaxElementBytes = 1024;

/// The type of elements of `bytes` bytes, 1 to kMaxElementBytes: HIPS_BYTES (hips.h).
constexpr DataType bytes_type(std::size_t bytes) {
  return static_cast<DataType>(bytes <= kMaxElementBytes ? bytes << 8U | 0xff : 0xff);
}
/// Is it a bytes_type() of a valid size?
constexpr bool is_bytes(DataType type) {
  const auto value = static_cast<std::uint32_t>(type);
  return (value & 0xff) == 0xff && value >> 8U >= 1 && value >> 8U <= kMaxElementBytes;
}
/// Has it the form of a user-defined operation? Only the library knows whether it exists.
constexpr bool is_user(ReduceOp op) {
  return static_cast<std::int32_t>(op) >= 0xfe && (static_cast<std::uint32_t>(op) & 0xff) >= 0xfe;
}
/// Is it a user-defined operation that does not commute, so that operands are reduced in the order of ranks?
constexpr bool is_ordered(ReduceOp op) {
  return is_user(op) && (static_cast<std::uint32_t>(op) & 0xff) == 0xff;
}

namespace detail {
inline constexpr std::uint8_t kBytesOfType[kNumDataTypes] = {4, 8, 4, 8, 1, 2, 1, 2, 4, 8, 2, 2};
}

/// Bytes of an element.
constexpr std::size_t size_of(DataType type) {
  const auto value = static_cast<std::uint32_t>(type);
  return value < std::uint32_t{kNumDataTypes} ? detail::kBytesOfType[value] : value >> 8U;
}

constexpr bool is_floating(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64 || type == DataType::kFloat16 ||
         type == DataType::kBfloat16;
}

/// Does the operation exist for the type? Bitwise and logical ones do not for floating types, and only
/// user-defined ones do for bytes_type().
constexpr bool applies_to(ReduceOp op, DataType type) {
  if (is_user(op)) return true;
  if (is_bytes(type)) return false;
  return op <= ReduceOp::kAvg || !is_floating(type);
}

/// Which threads of this process call, on one communicator and its requests; the values are those of
/// `hips_thread_mode_t`. Different communicators may be called by different threads at once in every mode.
enum class ThreadMode : std::uint8_t {
  /// As MPI_THREAD_SERIALIZED: any thread, one call at a time; concurrent calls are an error. Unlike in
  /// MPI, several threads may test and wait for different requests at once.
  kSerialized = 0,
  /// No two threads use the communicator or its requests at once, and while it has requests no other thread waits on another
  /// communicator, which would make progress on them. Small requests cost less.
  kSingle = 1,
  /// Deprecated name of kSerialized. It allows less than MPI_THREAD_MULTIPLE does.
  kMultiple = kSerialized,
};

/// "int32", "uint8", "float16", "bfloat16", ...; "bytes" for a bytes_type(), "unknown type" for an invalid
/// value
HIPS_EXPORT const char* to_string(DataType type);
/// "sum", "avg", "band", "land", ...; "user op" or "ordered user op" for a user-defined one, "unknown op" for
/// an invalid value
HIPS_EXPORT const char* to_string(ReduceOp op);

}  // namespace hips
