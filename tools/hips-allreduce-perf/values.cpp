#include "tools/hips-allreduce-perf/values.hpp"

#include <cstring>

namespace hips::perf {
namespace {

/// Two rounds of multiplying, so that every bit depends on all of the index: one round leaves its low bits
/// with short periods, and blocks a power of two apart would look alike.
constexpr std::uint64_t hash(std::size_t element) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  std::uint64_t bits = static_cast<std::uint64_t>(element) * kGolden;
  bits = (bits ^ (bits >> 32)) * kGolden;
  return bits >> 32;
}

constexpr std::int64_t base(std::size_t element) {
  return static_cast<std::int64_t>(hash(element) >> 26);
}  // 0..63

constexpr std::int64_t turn(std::size_t element, int num_ranks) {
  return static_cast<std::int64_t>((hash(element) & 0x3FFFFFF) % static_cast<std::uint64_t>(num_ranks));
}

std::int64_t input(ReduceOp op, std::size_t element, int rank, int num_ranks) {
  const std::int64_t h = turn(element, num_ranks);
  if (op != ReduceOp::kProd) return base(element) + (h + rank) % num_ranks;
  if (rank == h) return 3;
  return rank % 2 != 0 ? -1 : 1;
}

std::int64_t result(ReduceOp op, std::size_t element, int num_ranks) {
  const std::int64_t n = num_ranks;
  switch (op) {
    case ReduceOp::kSum:
      return n * base(element) + n * (n - 1) / 2;
    case ReduceOp::kMin:
      return base(element);
    case ReduceOp::kMax:
      return base(element) + n - 1;
    case ReduceOp::kProd:
      break;
  }
  const std::int64_t num_negative = n / 2 - turn(element, num_ranks) % 2;
  return num_negative % 2 != 0 ? -3 : 3;
}

/// Calls `body` with a value of the C++ type that `type` names.
template <typename Body>
auto with_type(DataType type, Body body) {
  switch (type) {
    case DataType::kInt32:
      return body(std::int32_t{});
    case DataType::kInt64:
      return body(std::int64_t{});
    case DataType::kFloat32:
      return body(float{});
    case DataType::kFloat64:
      break;
  }
  return body(double{});
}

}  // namespace

void fill(std::span<std::byte> buffer, DataType type, ReduceOp op, int rank, int num_ranks) {
  with_type(type, [&]<typename T>(T) {
    const std::size_t count = buffer.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) {
      const T value = static_cast<T>(input(op, i, rank, num_ranks));
      std::memcpy(buffer.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
}

std::int64_t count_wrong(std::span<const std::byte> buffer, DataType type, ReduceOp op, int num_ranks) {
  return with_type(type, [&]<typename T>(T) {
    const std::size_t count = buffer.size() / sizeof(T);
    std::int64_t num_wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, buffer.data() + i * sizeof(T), sizeof(T));
      if (value != static_cast<T>(result(op, i, num_ranks))) ++num_wrong;
    }
    return num_wrong;
  });
}

}  // namespace hips::perf
