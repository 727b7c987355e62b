#pragma once

#include <cstdint>

namespace hips::exec {

/// The 32 bits of a notification: receive slot, its generation, and the number of returned credits (0 if the
/// notification announces data). Credits are added, so notifications of credits may arrive in any order.
struct SlotToken {
  static constexpr std::uint32_t kMaxSlots = 1U << 20;
  static constexpr std::uint32_t kGenerations = 1U << 8;
  static constexpr std::uint32_t kMaxCredits = (1U << 4) - 1;

  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  std::uint32_t credits = 0;

  [[nodiscard]] std::uint32_t pack() const { return slot << 12U | generation << 4U | credits; }
  static SlotToken unpack(std::uint32_t bits) { return {bits >> 12U, bits >> 4U & 0xffU, bits & 0xfU}; }
};

}  // namespace hips::exec
