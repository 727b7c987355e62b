#include "lib/ps/nic_pairs.hpp"

#include <algorithm>

namespace hips::ps {

std::vector<std::pair<std::size_t, std::size_t>> nic_pairs(std::span<const comm::NicInfo> a,
                                                           std::span<const std::uint32_t> rails_of_a,
                                                           std::span<const comm::NicInfo> b,
                                                           std::span<const std::uint32_t> rails_of_b) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const std::uint32_t of_a : rails_of_a) {
    if (of_a >= a.size() || a[of_a].subnet.empty() || pairs.size() == kMostNicPairs) continue;
    if (std::ranges::any_of(pairs, [&](const auto& pair) { return pair.first == of_a; })) continue;
    const auto found = std::ranges::find_if(rails_of_b, [&](std::uint32_t of_b) {
      return of_b < b.size() && b[of_b].subnet == a[of_a].subnet &&
             std::ranges::none_of(pairs, [&](const auto& pair) { return pair.second == of_b; });
    });
    if (found != rails_of_b.end()) pairs.emplace_back(of_a, *found);
  }
  return pairs;
}

}  // namespace hips::ps
