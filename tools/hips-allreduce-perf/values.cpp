#include "tools/hips-allreduce-perf/values.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "lib/base/visit_type.hpp"

namespace hips::perf {
namespace {

/// Two multiplications, so that every bit depends on all bits of the index: after one, the low bits have
/// short periods, and blocks at a distance of a power of two would be equal.
constexpr std::uint64_t hash64(std::size_t element) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  std::uint64_t bits = static_cast<std::uint64_t>(element) * kGolden;
  return (bits ^ (bits >> 32)) * kGolden;
}
constexpr std::uint64_t hash(std::size_t element) {
  return hash64(element) >> 32;
}

constexpr std::int64_t base(std::size_t element) {
  return static_cast<std::int64_t>(hash(element) >> 26);
}  // 0..63

/// h of the header.
constexpr std::int64_t offset(std::size_t element, int num_ranks) {
  return static_cast<std::int64_t>((hash(element) & 0x3FFFFFF) % static_cast<std::uint64_t>(num_ranks));
}

constexpr bool truth(std::size_t element) {
  return (hash64(element + 1) >> 40 & 1) != 0;
}

/// 64 random bits; elements use the lower ones.
constexpr std::uint64_t pattern(std::size_t element) {
  return hash64(element) ^ hash64(~element) >> 7;
}

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

template <typename T>
T to_element(std::int64_t value) {
  if constexpr (kIsHalf<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

/// Inputs and results for one type and operation.
template <typename T>
class Values {
 public:
  Values(ReduceOp op, int num_ranks) : op_(op), num_ranks_(num_ranks) {
    // Bit j is determined by the rank with t = j mod n.
    masks_.resize(static_cast<std::size_t>(std::min(num_ranks, 64)));
    for (std::size_t j = 0; j < 64; ++j) masks_[j % masks_.size()] |= std::uint64_t{1} << j;
  }

  [[nodiscard]] T input(std::size_t element, int rank) const {
    const std::int64_t h = offset(element, num_ranks_), t = (h + rank) % num_ranks_;
    switch (op_) {
      case ReduceOp::kProd:
        return to_element<T>(rank == h ? 3 : rank % 2 != 0 ? -1 : 1);
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        if (kIsHalf<T>) return to_element<T>(t == 0 ? base(element) : t == 1 ? 1 : 0);
        return to_element<T>(base(element) + t);
      case ReduceOp::kMin:
      case ReduceOp::kMax:
        return to_element<T>(base(element) + std::min(t, max_offset()));
      case ReduceOp::kBand:
        return to_element<T>(static_cast<std::int64_t>(pattern(element) | ~mask(t)));
      case ReduceOp::kBor:
      case ReduceOp::kBxor:
        return to_element<T>(static_cast<std::int64_t>(pattern(element) & mask(t)));
      // True is an even number, which detects implementations that test only the lowest bit or all bits.
      case ReduceOp::kLand:
        return to_element<T>(t > 0 || truth(element) ? 2 << t % 3 : 0);
      case ReduceOp::kLor:
        return to_element<T>(t == 0 && truth(element) ? 2 : 0);
      case ReduceOp::kLxor:
        return to_element<T>(t == 1 || (t == 0 && truth(element)) ? 2 : 0);
    }
    return {};
  }

  [[nodiscard]] T result(std::size_t element) const {
    const std::int64_t n = num_ranks_;
    switch (op_) {
      case ReduceOp::kSum:
        return to_element<T>(sum(element));
      case ReduceOp::kAvg:
        // The sum is converted to the type first: integers wrap.
        if constexpr (kIsHalf<T>)
          return T(static_cast<float>(sum(element)) / static_cast<float>(n));
        else if constexpr (std::is_same_v<T, std::uint64_t> || std::is_floating_point_v<T>)
          return static_cast<T>(to_element<T>(sum(element)) / static_cast<T>(n));
        else
          return static_cast<T>(static_cast<std::int64_t>(to_element<T>(sum(element))) / n);
      case ReduceOp::kMin:
        return to_element<T>(base(element));
      case ReduceOp::kMax:
        return to_element<T>(base(element) + std::min(n - 1, max_offset()));
      case ReduceOp::kProd: {
        const std::int64_t num_negative = n / 2 - offset(element, num_ranks_) % 2;
        return to_element<T>(num_negative % 2 != 0 ? -3 : 3);
      }
      case ReduceOp::kBand:
      case ReduceOp::kBor:
      case ReduceOp::kBxor:
        return to_element<T>(static_cast<std::int64_t>(pattern(element)));
      case ReduceOp::kLand:
      case ReduceOp::kLor:
        return to_element<T>(truth(element) ? 1 : 0);
      case ReduceOp::kLxor:
        return to_element<T>(truth(element) != (n > 1) ? 1 : 0);
    }
    return {};
  }

 private:
  /// base() is at most 63; bfloat16 represents all integers up to 256, int8 up to 127.
  static constexpr std::int64_t max_offset() { return sizeof(T) == 1 || kIsHalf<T> ? 63 : INT64_MAX; }

  [[nodiscard]] std::uint64_t mask(std::int64_t t) const {
    return static_cast<std::size_t>(t) < masks_.size() ? masks_[static_cast<std::size_t>(t)] : 0;
  }
  [[nodiscard]] std::int64_t sum(std::size_t element) const {
    const std::int64_t n = num_ranks_;
    if (kIsHalf<T>) return base(element) + (n > 1 ? 1 : 0);
    return n * base(element) + n * (n - 1) / 2;
  }

  ReduceOp op_;
  int num_ranks_;
  std::vector<std::uint64_t> masks_;
};

}  // namespace

void fill(std::span<std::byte> buffer, DataType type, ReduceOp op, int rank, int num_ranks) {
  visit_type(type, [&]<typename T>(T) {
    const Values<T> values(op, num_ranks);
    const std::size_t count = buffer.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) {
      const T value = values.input(i, rank);
      std::memcpy(buffer.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
}

std::int64_t count_wrong(std::span<const std::byte> buffer, DataType type, ReduceOp op, int num_ranks) {
  return visit_type(type, [&]<typename T>(T) {
    const Values<T> values(op, num_ranks);
    const std::size_t count = buffer.size() / sizeof(T);
    std::int64_t num_wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      // Bitwise: expected results are neither NaN nor negative zero.
      const T expected = values.result(i);
      if (std::memcmp(&expected, buffer.data() + i * sizeof(T), sizeof(T)) != 0) ++num_wrong;
    }
    return num_wrong;
  });
}

}  // namespace hips::perf
