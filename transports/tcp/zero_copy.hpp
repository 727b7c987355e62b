#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hips::tcp {

/// Whether the kernel reads large sends from user memory later instead of copying them.
enum class ZeroCopy : std::uint8_t {
  kOff,
  kOn,           ///< for each connection until the kernel reports that it copies anyway, as within a node
  kWhereCopied,  ///< also where the kernel copies; for tests
};

/// The zero-copy sends (MSG_ZEROCOPY) of one socket from which the kernel still reads. Each send has a ticket:
/// 1, 2, ... in the order of the sends.
///
/// Cost     each send pins pages, and reading the release takes a system call. That is cheaper than copying
///          from about 10 KiB on (Linux: Documentation/networking/msg_zerocopy.rst).
class ZeroCopySends {
 public:
  /// Smaller sends are copied, which is faster than pinning.
  static constexpr std::size_t kLeastBytes = 16U << 10U;

  /// Stays off if the socket does not support it.
  void set_up(int fd, ZeroCopy use);
  /// True if a send of `bytes` should use zero copy.
  [[nodiscard]] bool wants(std::size_t bytes) const { return use_ != ZeroCopy::kOff && bytes >= kLeastBytes; }
  /// Counts a zero-copy send that the kernel accepted; returns its ticket.
  std::uint64_t sent() { return ++sent_; }
  /// Reads which sends the kernel has released.
  void read_releases(int fd);
  /// True if the kernel no longer reads from this send and from all earlier ones.
  [[nodiscard]] bool released(std::uint64_t ticket) const { return ticket <= released_; }
  [[nodiscard]] bool any_held() const { return released_ < sent_; }

 private:
  void release(std::uint64_t first, std::uint64_t last);

  ZeroCopy use_ = ZeroCopy::kOff;
  std::uint64_t sent_ = 0, released_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> early_;  ///< ranges released before earlier sends
};

}  // namespace hips::tcp
