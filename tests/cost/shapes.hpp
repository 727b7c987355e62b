#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace hips::tests {

/// Every ordered list of radices of at least 2 whose product is at most `max_servers`.
inline std::vector<std::vector<std::int64_t>> radix_mixes(std::int64_t max_servers) {
  std::vector<std::vector<std::int64_t>> mixes;
  std::vector<std::int64_t> mix;
  const auto extend = [&](auto&& self, std::int64_t room) -> void {
    for (std::int64_t radix = 2; radix <= room; ++radix) {
      mix.push_back(radix);
      mixes.push_back(mix);
      self(self, room / radix);
      mix.pop_back();
    }
  };
  extend(extend, max_servers);
  return mixes;
}

/// "bcube:2x4x3" for family "bcube" and {2, 4, 3}; one level is written so that it is a list too.
inline std::string spec_of(const std::string& family, const std::vector<std::int64_t>& radices) {
  std::string spec = family + ":1";
  for (const std::int64_t radix : radices) spec += "x" + std::to_string(radix);
  return spec;
}

inline bool all_equal(const std::vector<std::int64_t>& radices) {
  for (const std::int64_t radix : radices) {
    if (radix != radices.front()) return false;
  }
  return true;
}

}  // namespace hips::tests
