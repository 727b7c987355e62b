#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "transports/transport.hpp"

namespace hips::exec {

/// What a receiver writes into a grant cell of a sender: where the output of one operation lies, so that
/// final blocks can be put there instead of into staging. It goes out with the operation's first segments.
///
/// A cell is only ever a cell, of this team or of a later one, because a grant that nobody waited for may
/// still be under way when its team is gone. `check` tells a torn, foreign or empty one.
struct Grant {
  std::uint64_t sequence = 0;  ///< of the operation
  transport::RemoteRegion region;
  std::uint64_t offset = 0;  ///< of the output in it
  std::uint64_t check = 0;

  [[nodiscard]] std::uint64_t checksum(std::uint64_t communicator) const {
    // Multiply and rotate, word by word: no change of one word or order of words cancels another's.
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

/// Operations take turns, so that the grant of the next one does not push out that of the running one.
inline constexpr std::uint32_t kGrantTurns = 2;

/// Below this a copy costs less than the second request; segments and whole outputs alike.
inline constexpr std::uint64_t kMinDirectBytes = 1024;

}  // namespace hips::exec
