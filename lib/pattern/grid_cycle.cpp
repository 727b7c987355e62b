#include "lib/pattern/grid_cycle.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/pattern/modulo.hpp"

namespace hips::pattern {
namespace {

/// The inverse of a modulo m by the extended Euclidean algorithm; gcd(a, m) == 1.
std::int64_t inverse(std::int64_t a, std::int64_t m) {
  std::int64_t old_rest = modulo(a, m), rest = m, old_factor = 1, factor = 0;
  while (rest != 0) {
    const std::int64_t quotient = old_rest / rest;
    old_rest = std::exchange(rest, old_rest - quotient * rest);
    old_factor = std::exchange(factor, old_factor - quotient * factor);
  }
  return modulo(old_factor, m);
}

}  // namespace

GridCycle::GridCycle(std::span<const std::int64_t> radices) {
  for (const std::int64_t radix : radices) {
    if (size_ > 1) {
      Dimension dimension{.below = size_, .radix = radix};
      // An even number of columns balances. Otherwise both are odd, and the longer side gives the columns.
      dimension.columns_are_digit = radix % 2 == 0 || (size_ % 2 == 1 && size_ <= radix);
      const std::int64_t excess = dimension.columns() % 2 == 0 ? 0 : dimension.length();
      dimension.ups = (dimension.columns() + excess) / 2;
      dimensions_.push_back(dimension);
    }
    size_ *= radix;
  }
}

std::int64_t GridCycle::Dimension::start(std::int64_t column) const {
  const std::int64_t ups_before = std::min(column, ups);
  const std::int64_t downs_before = column - ups_before;
  return modulo(downs_before - ups_before, length());
}

std::int64_t GridCycle::index_of(std::int64_t server) const {
  if (dimensions_.empty()) return server;
  std::int64_t index = server % dimensions_.front().below;
  for (const Dimension& dimension : dimensions_) {
    const std::int64_t digit = server / dimension.below % dimension.radix;
    const std::int64_t column = dimension.columns_are_digit ? digit : index;
    const std::int64_t row = dimension.columns_are_digit ? index : digit;
    const std::int64_t way =
        column < dimension.ups ? row - dimension.start(column) : dimension.start(column) - row;
    index = column * dimension.length() + modulo(way, dimension.length());
  }
  return index;
}

std::int64_t GridCycle::server_at(std::int64_t index) const {
  std::int64_t server = 0;
  for (std::size_t i = dimensions_.size(); i-- > 0;) {
    const Dimension& dimension = dimensions_[i];
    const std::int64_t column = index / dimension.length();
    const std::int64_t way = index % dimension.length();
    const std::int64_t row =
        modulo(column < dimension.ups ? dimension.start(column) + way : dimension.start(column) - way,
               dimension.length());
    server += (dimension.columns_are_digit ? column : row) * dimension.below;
    index = dimension.columns_are_digit ? row : column;
  }
  return server + index;
}

std::int64_t DiagonalCycle::find_num_first(std::int64_t radix0, std::int64_t radix1) {
  const std::int64_t group = std::gcd(radix0, radix1);
  for (std::int64_t num_first = 1; num_first < group; ++num_first) {
    const std::int64_t other = group - num_first;
    if (std::gcd(num_first, radix0) == 1 && std::gcd(num_first, radix1) == 1 &&
        std::gcd(other, radix0) == 1 && std::gcd(other, radix1) == 1) {
      return num_first;
    }
  }
  return 0;
}

DiagonalCycle::DiagonalCycle(std::int64_t radix0, std::int64_t radix1, std::int64_t num_first,
                             std::int32_t which)
    : radix_{radix0, radix1}, group_(std::gcd(radix0, radix1)), first_(num_first), first_level_(which) {}

std::int32_t DiagonalCycle::leaves_on(std::int64_t server) const {
  const std::int64_t sum = (server % radix_[0] + server / radix_[0]) % group_;
  return sum < first_ ? first_level_ : 1 - first_level_;
}

std::int64_t DiagonalCycle::index_of(std::int64_t server) const {
  const std::int64_t digit[2] = {server % radix_[0], server / radix_[0]};
  const std::int64_t step = (digit[0] + digit[1]) % group_;  // of its round of g steps
  const std::int64_t moved_first = std::min(step, first_);
  // The round began at (round * d_0, round * d_1), where d are the moves of one round.
  std::int64_t round[2];
  for (std::int32_t level = 0; level < 2; ++level) {
    const bool is_first = level == first_level_;
    const std::int64_t began = digit[level] - (is_first ? moved_first : step - moved_first);
    const std::int64_t moves = is_first ? first_ : group_ - first_;
    round[level] = modulo(began, radix_[level]) * inverse(moves, radix_[level]) % radix_[level];
  }
  // Chinese remainders: round = round[0] mod n_0 = round[1] mod n_1; they agree mod g.
  const std::int64_t cofactor0 = radix_[0] / group_, cofactor1 = radix_[1] / group_;
  const std::int64_t apart = modulo(round[1] - round[0], radix_[1]) / group_;
  const std::int64_t times =
      cofactor1 == 1 ? 0 : apart % cofactor1 * inverse(cofactor0, cofactor1) % cofactor1;
  return (round[0] + radix_[0] * times) * group_ + step;
}

std::int64_t DiagonalCycle::server_at(std::int64_t index) const {
  const std::int64_t round = index / group_, step = index % group_;
  const std::int64_t moved_first = std::min(step, first_);
  std::int64_t digit[2];
  for (std::int32_t level = 0; level < 2; ++level) {
    const bool is_first = level == first_level_;
    const std::int64_t moves = is_first ? first_ : group_ - first_;
    digit[level] = modulo(round * moves + (is_first ? moved_first : step - moved_first), radix_[level]);
  }
  return digit[0] + radix_[0] * digit[1];
}

}  // namespace hips::pattern
