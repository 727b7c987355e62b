#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/comm/setup/process_info.hpp"

namespace hips::ps {

/// Pairs of NICs of two processes that are in one network: numbers in `a` and in `b`. Each NIC is in one pair at most, and there are
/// at most kMostNicPairs.
///
/// `rails_of_a`, `rails_of_b`: numbers of the NICs that are for data, by rail. The first come first.
inline constexpr std::size_t kMostNicPairs = 8;
std::vector<std::pair<std::size_t, std::size_t>> nic_pairs(std::span<const comm::NicInfo> a,
                                                           std::span<const std::uint32_t> rails_of_a,
                                                           std::span<const comm::NicInfo> b,
                                                           std::span<const std::uint32_t> rails_of_b);

}  // namespace hips::ps
