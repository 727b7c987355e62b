#pragma once

#include <cstddef>
#include <cstdint>

namespace hips::write {

/// The offsets of the messages of a run in a buffer. Small ones cycle through a page, each in cache lines of
/// its own, so that they do not all use the same line. Larger ones all start at 0.
class Slots {
 public:
  static constexpr std::size_t kCycle = 4096;
  static constexpr std::size_t kLine = 64;

  explicit Slots(std::size_t bytes)
      : stride_((bytes + kLine - 1) / kLine * kLine), count_(bytes <= kCycle / 2 ? kCycle / stride_ : 1) {}

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t offset(std::uint64_t message) const { return message % count_ * stride_; }
  /// The size of a buffer for messages of up to `bytes`.
  static std::size_t buffer_bytes(std::size_t bytes) {
    return bytes <= kCycle ? kCycle : (bytes + kCycle - 1) / kCycle * kCycle;
  }

 private:
  std::size_t stride_, count_;
};

}  // namespace hips::write
