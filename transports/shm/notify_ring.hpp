#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hips::shm {

/// A ring of notifications from one sender to one receiver, in the receiver's memory. `capacity` entries follow.
///
///     entry = lap << 32 | token      lap = 1 + position / capacity
///
/// The lap tells the receiver whether an entry is new, so a notification moves one cache line, the entry's.
/// The receiver publishes its position only every quarter of the capacity.
struct alignas(64) NotifyRing {
  // Written by the receiver.
  std::atomic<std::uint64_t> taken{0};   ///< entries read
  std::atomic<std::uint32_t> closed{0};  ///< 1: the receiver reads no more entries
  // Written by the sender.
  alignas(64) std::atomic<std::uint64_t> owner{0};  ///< see below
  std::atomic<std::uint32_t> wants_space{0};        ///< 1: the sender found the ring full

  // `owner` keeps a late sender out of a ring that has a new sender:
  //   0 free -> token (even, not 0): open, waits for its sender -> token | 1: taken -> 0: its sender has
  //   left.

  [[nodiscard]] std::atomic<std::uint64_t>* entries() {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(this + 1);
  }
  static constexpr std::size_t bytes(std::uint32_t capacity) {
    return sizeof(NotifyRing) + capacity * sizeof(std::uint64_t);
  }
};
static_assert(sizeof(NotifyRing) == 128, "the two sides write to different cache lines");

/// The sender's end.
class RingSender {
 public:
  RingSender() = default;
  RingSender(NotifyRing* ring, std::uint32_t capacity) : ring_(ring), capacity_(capacity) {}

  /// True if there is room for one more entry. If not, the receiver reports it later (publish_if_due()).
  [[nodiscard]] bool has_space() {
    if (head_ - taken_ < capacity_) return true;
    taken_ = ring_->taken.load(std::memory_order_acquire);
    if (head_ - taken_ < capacity_) return true;
    // Set the flag, then check again: either we see the room that the receiver made, or it sees the flag.
    ring_->wants_space.store(1, std::memory_order_seq_cst);
    taken_ = ring_->taken.load(std::memory_order_seq_cst);
    return head_ - taken_ < capacity_;
  }

  /// Requires has_space(). A process that reads the entry sees all earlier writes.
  void push(std::uint32_t token) {
    const std::uint64_t lap = 1 + head_ / capacity_;
    ring_->entries()[head_ % capacity_].store(lap << 32 | token, std::memory_order_release);
    ++head_;
  }

  [[nodiscard]] bool closed() const { return ring_->closed.load(std::memory_order_acquire) != 0; }

 private:
  NotifyRing* ring_ = nullptr;
  std::uint64_t capacity_ = 0;  ///< a power of two
  std::uint64_t head_ = 0;
  std::uint64_t taken_ = 0;  ///< as last seen
};

/// The receiver's end.
class RingReceiver {
 public:
  RingReceiver() = default;
  RingReceiver(NotifyRing* ring, std::uint32_t capacity) : ring_(ring), capacity_(capacity) {}

  [[nodiscard]] bool empty() const { return !peek(); }

  std::optional<std::uint32_t> pop() {
    const auto token = peek();
    if (token) ++tail_;
    return token;
  }

  /// Publishes the read position once a quarter of the ring is read. True if the sender waits for room and must be
  /// woken.
  [[nodiscard]] bool publish_if_due() {
    if (tail_ - published_ < capacity_ / 4) return false;
    published_ = tail_;
    ring_->taken.store(tail_, std::memory_order_seq_cst);
    return ring_->wants_space.load(std::memory_order_seq_cst) != 0 &&
           ring_->wants_space.exchange(0, std::memory_order_seq_cst) != 0;
  }

 private:
  [[nodiscard]] std::optional<std::uint32_t> peek() const {
    const std::uint64_t entry = ring_->entries()[tail_ % capacity_].load(std::memory_order_acquire);
    if (entry >> 32 != ((1 + tail_ / capacity_) & 0xffffffff)) return std::nullopt;
    return static_cast<std::uint32_t>(entry);
  }

  NotifyRing* ring_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t published_ = 0;
};

}  // namespace hips::shm
