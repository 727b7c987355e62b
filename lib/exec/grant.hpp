#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "transports/transport.hpp"

namespace hips::exec {

/// Tells a sender where the output of one operation lies, so that the sender writes final blocks there
/// instead of into staging. The receiver writes it into a grant cell of the sender, together with the
/// operation's first segments.
///
/// Cell memory is never reused for anything else, because a late grant may arrive after its team is gone.
/// `check` detects a torn, foreign or empty grant.
struct Grant {
  std::uint64_t sequence = 0;  ///< sequence number of the operation
  transport::RemoteRegion region;
  std::uint64_t offset = 0;  ///< offset of the output in `region`
  std::uint64_t check = 0;

  [[nodiscard]] std::uint64_t checksum(std::uint64_t communicator) const {
    // Multiply and rotate, word by word: changed or reordered words change the sum.
    std::uint64_t sum = 0x9e3779b97f4a7c15ULL ^ communicator;
    const auto add = [&](std::uint64_t word) { sum = std::rotl((sum ^ word) * 0xff51afd7ed558ccdULL, 31); };
    add(sequence);
    for (const std::uint64_t word : region.key) add(word);
    add(region.bytes);
    add(offset);
    return sum;
  }
};
static_assert(sizeof(Grant) == 64, "one cache line");
static_assert(std::is_trivially_copyable_v<Grant>);

/// Consecutive operations use different cells, so that the grant of the next operation does not overwrite
/// that of the current one.
inline constexpr std::uint32_t kGrantTurns = 2;

/// Limit for segments and for whole outputs: below it, a copy is cheaper than a second request.
inline constexpr std::uint64_t kMinDirectBytes = 1024;

}  // namespace hips::exec
