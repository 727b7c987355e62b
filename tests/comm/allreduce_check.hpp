#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <hips/hips.hpp>

#include "tests/choices.hpp"

namespace hips::test {

/// A running hash (FNV-1a) of all results of a rank. Equal digests on all ranks mean equal results.
class Digest {
 public:
  template <typename T>
  void add(const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t i = 0; i < values.size() * sizeof(T); ++i) hash_ = (hash_ ^ bytes[i]) * 1099511628211u;
  }
  [[nodiscard]] std::string text() const { return std::to_string(hash_); }

 private:
  std::uint64_t hash_ = 14695981039346656037u;
};

template <typename T>
inline constexpr bool kIsHalf = std::same_as<T, Float16> || std::same_as<T, Bfloat16>;

/// The type in which an element is printed.
template <typename T>
using Widened = std::conditional_t<kIsHalf<T>, float, T>;

template <typename T>
T element(std::int64_t value) {
  if constexpr (kIsHalf<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

/// The input of rank r for element i: small numbers, so that every order of reduction gives the same exact result,
/// in bfloat16 too.
template <typename T>
T operand(ReduceOp op, Rank r, std::size_t i) {
  const auto mix = static_cast<std::int64_t>(static_cast<std::size_t>(r) * 31 + i * 17);
  if (op == ReduceOp::kProd) return element<T>(mix % (kIsHalf<T> ? 11 : 3) == 0 ? -2 : 1);
  if (op == ReduceOp::kBand) return element<T>(~(std::int64_t{1} << mix % 67 % 63));
  if (op >= ReduceOp::kLand && op != ReduceOp::kLxor)
    return element<T>(mix % 29 == 0 ? mix % 2 * 6 : 6 * (mix % 2));
  if (op == ReduceOp::kLxor) return element<T>(mix % 3 * 2);
  return element<T>(kIsHalf<T> ? mix % 17 - 8 : mix % 101 - 50);
}

template <typename T>
T fold(ReduceOp op, T a, T b) {
  if constexpr (kIsHalf<T>) {
    return T(fold(op, static_cast<float>(a), static_cast<float>(b)));
  } else {
    if (op == ReduceOp::kMin) return b < a ? b : a;
    if (op == ReduceOp::kMax) return a < b ? b : a;
    if constexpr (std::floating_point<T>) {
      return op == ReduceOp::kProd ? a * b : a + b;
    } else {
      const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
      switch (op) {
        case ReduceOp::kProd:
          return static_cast<T>(x * y);
        case ReduceOp::kBand:
          return static_cast<T>(x & y);
        case ReduceOp::kBor:
          return static_cast<T>(x | y);
        case ReduceOp::kBxor:
          return static_cast<T>(x ^ y);
        case ReduceOp::kLand:
          return static_cast<T>(x != 0 && y != 0);
        case ReduceOp::kLor:
          return static_cast<T>(x != 0 || y != 0);
        case ReduceOp::kLxor:
          return static_cast<T>((x != 0) != (y != 0));
        default:
          return static_cast<T>(x + y);
      }
    }
  }
}

template <typename T>
T expected(ReduceOp op, Rank num_ranks, std::size_t i) {
  T result = operand<T>(op, 0, i);
  if (op >= ReduceOp::kLand) result = element<T>(static_cast<Widened<T>>(result) == Widened<T>{0} ? 0 : 1);
  for (Rank r = 1; r < num_ranks; ++r) result = fold(op, result, operand<T>(op, r, i));
  if (op != ReduceOp::kAvg) return result;
  if constexpr (kIsHalf<T>)
    return T(static_cast<float>(result) / static_cast<float>(num_ranks));
  else if constexpr (sizeof(T) == 8 && std::unsigned_integral<T>)
    return result / static_cast<T>(num_ranks);
  else if constexpr (std::integral<T>)
    return static_cast<T>(std::int64_t{result} / num_ranks);
  else
    return result / static_cast<T>(num_ranks);
}

/// Checks one call in place and one out of place, element by element. Overwrites each input right after the call:
/// no rank may still read it.
template <typename T>
void check_allreduce(Communicator& comm, ReduceOp op, std::size_t count, Digest& digest) {
  std::vector<T> in(count), out(count), inout(count);
  for (std::size_t i = 0; i < count; ++i) inout[i] = in[i] = operand<T>(op, comm.rank(), i);
  comm.allreduce<T>(in, out, op);
  in.assign(count, element<T>(99));
  comm.allreduce<T>(inout, op);
  for (std::size_t i = 0; i < count; ++i) {
    const T right = expected<T>(op, comm.size(), i);
    const auto is_right = [&](const T& value) { return std::memcmp(&value, &right, sizeof(T)) == 0; };
    if (is_right(out[i]) && is_right(inout[i])) continue;
    const auto text = [](T value) {
      return std::to_string(static_cast<double>(static_cast<Widened<T>>(value)));
    };
    throw std::runtime_error("wrong: element " + std::to_string(i) + " of " + std::to_string(count) + " " +
                             to_string(data_type_of<T>()) + " " + to_string(op) + " on " + comm.describe() +
                             ": " + text(out[i]) + " and in place " + text(inout[i]) + " instead of " +
                             text(right));
  }
  digest.add(out);
  inout.assign(count, element<T>(99));
}

/// Reduces values whose result depends on the order of operands. Only checks that all ranks get equal results.
template <typename T>
void reduce_order_sensitive_values(Communicator& comm, ReduceOp op, Digest& digest) {
  constexpr std::size_t kCount = 97;
  std::vector<T> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto mix = (static_cast<std::size_t>(comm.rank()) * 13 + i * 7) % 11;
    using Value = Widened<T>;
    values[i] = static_cast<T>(mix == 0   ? std::numeric_limits<Value>::quiet_NaN()
                               : mix == 1 ? -std::numeric_limits<Value>::quiet_NaN()
                               : mix < 5  ? Value{-0.0}
                               : mix < 8  ? Value{0.0}
                                          : Value{1} / static_cast<Value>(3 + mix + i % 5));
  }
  comm.allreduce<T>(values, op);
  digest.add(values);
}

template <typename T>
void check_if_it_applies(Communicator& comm, ReduceOp op, std::size_t count, Digest& digest) {
  if constexpr (std::integral<T>) {
    check_allreduce<T>(comm, op, count, digest);
  } else {
    if (applies_to(op, data_type_of<T>())) check_allreduce<T>(comm, op, count, digest);
  }
}

/// Checks `num` pairs of type and op, from the `turn`th on. Each call continues where the last one ended, so that
/// the communicators of a test together cover all pairs.
inline void check_next(Communicator& comm, int num, std::size_t& turn, Digest& digest) {
  using Check = void (*)(Communicator&, ReduceOp, std::size_t, Digest&);
  static constexpr Check kChecks[] = {check_if_it_applies<std::int8_t>,   check_if_it_applies<std::int16_t>,
                                      check_if_it_applies<std::int32_t>,  check_if_it_applies<std::int64_t>,
                                      check_if_it_applies<std::uint8_t>,  check_if_it_applies<std::uint16_t>,
                                      check_if_it_applies<std::uint32_t>, check_if_it_applies<std::uint64_t>,
                                      check_if_it_applies<Float16>,       check_if_it_applies<Bfloat16>,
                                      check_if_it_applies<float>,         check_if_it_applies<double>};
  constexpr std::size_t kCounts[] = {1031, 1, 13, 257, 4099};
  static_assert(std::size(kChecks) == kNumDataTypes);
  if (test::runs_everything()) num = kNumDataTypes * kNumReduceOps;
  for (; num > 0; --num, ++turn) {
    // 12 types and 11 ops have no common divisor, so stepping through both at once covers every pair.
    const auto op = static_cast<ReduceOp>(turn % kNumReduceOps);
    kChecks[turn % kNumDataTypes](comm, op, kCounts[turn % std::size(kCounts)], digest);
  }
}

/// The `turn` of this process; all ranks make the same calls, so it is the same on all.
inline std::size_t& turn_of_process() {
  thread_local std::size_t turn = 0;
  return turn;
}

/// Checks four types and ops in several sizes, and some pairs of all types and ops.
inline void check_all(Communicator& comm, Digest& digest) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{13}, std::size_t{1031}}) {
      check_allreduce<std::int32_t>(comm, op, count, digest);
      check_allreduce<std::int64_t>(comm, op, count, digest);
      check_allreduce<float>(comm, op, count, digest);
      check_allreduce<double>(comm, op, count, digest);
    }
    reduce_order_sensitive_values<float>(comm, op, digest);
    reduce_order_sensitive_values<double>(comm, op, digest);
  }
  check_next(comm, 22, turn_of_process(), digest);
  reduce_order_sensitive_values<Float16>(comm, ReduceOp::kSum, digest);
  reduce_order_sensitive_values<Bfloat16>(comm, ReduceOp::kAvg, digest);
}

/// Checks four types and ops once, in alternating sizes: for worlds so large that calls are slow.
inline void check_each(Communicator& comm, Digest& digest) {
  constexpr std::size_t kCounts[] = {1031, 1, 13};
  std::size_t turn = 0;
  const auto count = [&] { return kCounts[turn++ % std::size(kCounts)]; };
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
    check_allreduce<std::int32_t>(comm, op, count(), digest);
    check_allreduce<std::int64_t>(comm, op, count(), digest);
    check_allreduce<float>(comm, op, count(), digest);
    check_allreduce<double>(comm, op, count(), digest);
  }
  check_next(comm, 8, turn_of_process(), digest);
  reduce_order_sensitive_values<float>(comm, ReduceOp::kSum, digest);
  reduce_order_sensitive_values<double>(comm, ReduceOp::kMin, digest);
}

}  // namespace hips::test
