#pragma once

#include <cstdint>

namespace hips::comm {

/// A spare communicator, as its ranks compare it.
struct SpareNote {
  std::uint64_t digest = 0;  ///< of its ranks and terms
  std::uint64_t id = 0;
  std::uint64_t calls = 0;  ///< that it has had

  friend bool operator==(const SpareNote&, const SpareNote&) = default;
};

}  // namespace hips::comm
