#pragma once

#include <cstdint>
#include <vector>

#include "lib/pattern/pairs.hpp"

namespace hips::pattern {

/// Recursive multiplying over any number of members.
///
/// The core is the largest number <= size with no prime factor above 7. A core member's number is written in digits of the
/// radices; in round k it exchanges with all members that differ from it in digit k alone. pairs.hpp has the others.
///
///   size 9, radices 3 and 3: member 4 exchanges with 3 and 5, then with 1 and 7
struct Multiplying {
  std::int64_t size = 0;

  [[nodiscard]] constexpr std::int64_t core() const {
    for (std::int64_t core = size;; --core) {
      std::int64_t left = core;
      for (const std::int64_t prime : {2, 3, 5, 7})
        while (left > 1 && left % prime == 0) left /= prime;
      if (left <= 1) return core;
    }
  }
  [[nodiscard]] constexpr std::int64_t rest() const { return size - core(); }

  /// One for each round: 4 where possible, since a round costs the time of a message, and a message little more than itself.
  [[nodiscard]] std::vector<std::int64_t> radices() const {
    std::vector<std::int64_t> radices;
    std::int64_t left = core();
    for (const std::int64_t radix : {4, 3, 2, 5, 7})
      for (; left % radix == 0; left /= radix) radices.push_back(radix);
    return radices;
  }
};

}  // namespace hips::pattern
