#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hips::tcp {

/// Sends from which the kernel reads later instead of copying.
enum class ZeroCopy : std::uint8_t {
  kOff,
  kOn,  ///< until the kernel says of a connection that it copies all the same, as it does on one host
  kWhereCopied,  ///< there, too: what tests need
};

/// Which sends of one socket the kernel still reads from (MSG_ZEROCOPY). Each has a ticket: 1, 2, ... in the
/// order of the sends.
///
/// Cost     of a send: pages are pinned, and released with a message that takes a system call to read; that
/// is
///          less than copying from some 10 KiB on (Linux: Documentation/networking/msg_zerocopy.rst).
class ZeroCopySends {
 public:
  /// So little is copied sooner than pinned.
  static constexpr std::size_t kLeastBytes = 16U << 10U;

  /// Off where the socket cannot.
  void set_up(int fd, ZeroCopy use);
  /// Is a send of so many bytes to be one of these?
  [[nodiscard]] bool wants(std::size_t bytes) const { return use_ != ZeroCopy::kOff && bytes >= kLeastBytes; }
  /// The kernel has taken such a send.
  std::uint64_t sent() { return ++sent_; }
  /// Reads what the kernel has released.
  void look(int fd);
  /// Is this send, and with it all before it, the kernel's no more?
  [[nodiscard]] bool released(std::uint64_t ticket) const { return ticket <= released_; }
  [[nodiscard]] bool any_held() const { return released_ < sent_; }

 private:
  void release(std::uint64_t first, std::uint64_t last);

  ZeroCopy use_ = ZeroCopy::kOff;
  std::uint64_t sent_ = 0, released_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> early_;  ///< behind sends that are still held
};

}  // namespace hips::tcp
