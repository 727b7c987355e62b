#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hips::pattern {

/// A Hamiltonian cycle of neighbours through a grid of any radices. Each step changes one digit by +1 or -1
/// (mod its radix), which is a cable of a torus, or a path through a switch of a BCube.
///
/// The cycle is built one digit at a time. The cycle of length M through the digits so far and the new digit
/// of radix n span an M x n torus. It is walked column by column, each column once round:
///
///   column c   starts at s_c, goes up (first `ups` columns) or down, ends one before s_c or one after
///
/// Each column moves the start by -1 or +1. After all columns it must be back: 0 mod the column's length. An
/// even number of columns achieves that with half of them up and half down; an odd number of odd columns does
/// when the excess of one kind equals the length.
///
/// Cost     the number of digits for each call.
/// Threads  const calls from any thread.
class GridCycle {
 public:
  /// Radices of digits 0, 1, ..., each at least 2.
  explicit GridCycle(std::span<const std::int64_t> radices);

  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Place on the cycle of the server with this number; digit 0 is the least significant.
  [[nodiscard]] std::int64_t index_of(std::int64_t server) const;
  [[nodiscard]] std::int64_t server_at(std::int64_t index) const;

 private:
  struct Dimension {
    std::int64_t below = 1;  ///< length of the cycle through the digits before
    std::int64_t radix = 1;
    bool columns_are_digit = false;  ///< otherwise columns are places of the cycle before
    std::int64_t ups = 0;
    [[nodiscard]] std::int64_t columns() const { return columns_are_digit ? radix : below; }
    [[nodiscard]] std::int64_t length() const { return columns_are_digit ? below : radix; }
    [[nodiscard]] std::int64_t start(std::int64_t column) const;
  };
  std::vector<Dimension> dimensions_;  ///< for digits 1, 2, ...
  std::int64_t size_ = 1;
};

/// Two Hamiltonian cycles through an n_0 x n_1 grid. At every server they leave on different levels, and
/// arrive on different levels. Every step adds 1 to a digit.
///
/// With g = gcd(n_0, n_1), cycle 0 steps on level 0 where (a_0 + a_1) mod g < num_first, otherwise on level
/// 1; cycle 1 steps on the other level. g steps move it by (num_first, g-num_first). Both are a single cycle
/// if num_first and g-num_first have no divisor in common with n_0 or n_1.
///
/// Source   Trotter and Erdos, "When the Cartesian product of directed cycles is Hamiltonian", 1978.
class DiagonalCycle {
 public:
  /// The smallest `num_first` for which both are single cycles; 0: none.
  static std::int64_t find_num_first(std::int64_t radix0, std::int64_t radix1);

  /// `which` is 0 or 1. Requires num_first == find_num_first(radix0, radix1) > 0.
  DiagonalCycle(std::int64_t radix0, std::int64_t radix1, std::int64_t num_first, std::int32_t which);

  [[nodiscard]] std::int64_t index_of(std::int64_t server) const;
  [[nodiscard]] std::int64_t server_at(std::int64_t index) const;
  /// The level, 0 or 1, on which the cycle leaves a server.
  [[nodiscard]] std::int32_t leaves_on(std::int64_t server) const;

 private:
  std::int64_t radix_[2];
  std::int64_t group_;  ///< g
  std::int64_t first_;  ///< steps on level first_level_, then group_ - first_ on the other
  std::int32_t first_level_;
};

}  // namespace hips::pattern
