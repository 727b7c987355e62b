#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <hips/hips.hpp>

namespace hips::test {

/// A running hash (FNV-1a) of all results of a rank: equal on all ranks or the results were not.
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

/// What rank r gives for element i: small numbers, so that every order of folding gives the same exact
/// result.
template <typename T>
T operand(ReduceOp op, Rank r, std::size_t i) {
  const auto mix = static_cast<std::int64_t>(static_cast<std::size_t>(r) * 31 + i * 17);
  if (op == ReduceOp::kProd) return static_cast<T>(mix % 3 == 0 ? -2 : 1);
  return static_cast<T>(mix % 101 - 50);
}

template <typename T>
T expected(ReduceOp op, Rank num_ranks, std::size_t i) {
  T result = operand<T>(op, 0, i);
  for (Rank r = 1; r < num_ranks; ++r) {
    const T next = operand<T>(op, r, i);
    switch (op) {
      case ReduceOp::kSum:
        result = static_cast<T>(result + next);
        break;
      case ReduceOp::kProd:
        result = static_cast<T>(result * next);
        break;
      case ReduceOp::kMin:
        result = next < result ? next : result;
        break;
      case ReduceOp::kMax:
        result = result < next ? next : result;
        break;
    }
  }
  return result;
}

/// One call in place and one out of place, checked element by element. Both overwrite their input at once
/// after the return: no rank may still read it.
template <typename T>
void check_allreduce(Communicator& comm, ReduceOp op, std::size_t count, Digest& digest) {
  std::vector<T> in(count), out(count), inout(count);
  for (std::size_t i = 0; i < count; ++i) inout[i] = in[i] = operand<T>(op, comm.rank(), i);
  comm.allreduce<T>(in, out, op);
  in.assign(count, T{99});
  comm.allreduce<T>(inout, op);
  for (std::size_t i = 0; i < count; ++i) {
    const T right = expected<T>(op, comm.size(), i);
    if (out[i] == right && inout[i] == right) continue;
    throw std::runtime_error("wrong: element " + std::to_string(i) + " of " + std::to_string(count) + " " +
                             to_string(data_type_of<T>()) + " " + to_string(op) + " on " + comm.describe() +
                             ": " + std::to_string(out[i]) + " and in place " + std::to_string(inout[i]) +
                             " instead of " + std::to_string(right));
  }
  digest.add(out);
  inout.assign(count, T{99});
}

/// Values whose result depends on the order of operands: only their being equal everywhere is checked.
template <typename T>
void fold_odd_values(Communicator& comm, ReduceOp op, Digest& digest) {
  constexpr std::size_t kCount = 97;
  std::vector<T> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto mix = (static_cast<std::size_t>(comm.rank()) * 13 + i * 7) % 11;
    values[i] = mix == 0   ? std::numeric_limits<T>::quiet_NaN()
                : mix == 1 ? -std::numeric_limits<T>::quiet_NaN()
                : mix < 5  ? T{-0.0}
                : mix < 8  ? T{0.0}
                           : static_cast<T>(1) / static_cast<T>(3 + mix + i % 5);
  }
  comm.allreduce<T>(values, op);
  digest.add(values);
}

/// Every type and op in several sizes.
inline void check_all(Communicator& comm, Digest& digest) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{13}, std::size_t{1031}}) {
      check_allreduce<std::int32_t>(comm, op, count, digest);
      check_allreduce<std::int64_t>(comm, op, count, digest);
      check_allreduce<float>(comm, op, count, digest);
      check_allreduce<double>(comm, op, count, digest);
    }
    fold_odd_values<float>(comm, op, digest);
    fold_odd_values<double>(comm, op, digest);
  }
}

/// Every type and op once, in sizes that take turns: for worlds so large that a call takes its time.
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
  fold_odd_values<float>(comm, ReduceOp::kSum, digest);
  fold_odd_values<double>(comm, ReduceOp::kMin, digest);
}

}  // namespace hips::test
