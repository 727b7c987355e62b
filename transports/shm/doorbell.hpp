#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace hips::shm {

/// Tells a receiver which of its rings have entries, so that it need not read each. It is in the receiver's
/// memory.
///
/// Two levels: one bit per ring, and in `summary_` one bit per word of these. An idle poll reads one word for
/// any number of peers. `summary_`, the sleep word and the bits of the first 384 rings share a cache line, so
/// a sender transfers one line to ring and to check whether the receiver sleeps.
///
/// **No wake-up is lost.** The sender sets its bits, then reads the sleep word; the receiver writes the sleep
/// word, then reads the bits. All four are sequentially consistent: in their single order either the sender
/// reads "asleep", or the receiver's read comes after the sender's bits and sees them.
///
/// Threads  any number of senders; one receiver. Lock-free, from any process.
class alignas(64) Doorbell {
 public:
  static constexpr std::uint32_t kNumWords = 62;
  static constexpr std::uint32_t kMaxRings = kNumWords * 64;

  // Sender.

  void ring(std::uint32_t slot) {
    const std::uint32_t word = slot / 64;
    const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
    // Only the sender of this ring sets its bit. If it is still set, the summary bit is set too, or the receiver
    // has taken the summary and will read this word.
    if ((words_[word].fetch_or(bit, std::memory_order_seq_cst) & bit) != 0) return;
    summary_.fetch_or(std::uint64_t{1} << word, std::memory_order_seq_cst);
  }

  /// After ring(): the number of the sleep to end, or 0 if the receiver is awake.
  [[nodiscard]] std::uint64_t asleep() const {
    const std::uint64_t sleep = sleep_.load(std::memory_order_seq_cst);
    return (sleep & 1) != 0 ? sleep : 0;
  }

  /// After the sender has ended `sleep`: saves other senders the system call. A sender that dies or stops
  /// before this delays no rank, because the receiver is awake already. A late sender changes nothing,
  /// because each sleep has its own number.
  void woken(std::uint64_t sleep) {
    sleep_.compare_exchange_strong(sleep, sleep + 1, std::memory_order_seq_cst);
  }

  // Receiver.

  void fall_asleep() {
    last_sleep_ += 2;
    sleep_.store(last_sleep_, std::memory_order_seq_cst);
  }
  void wake_up() { sleep_.store(last_sleep_ + 1, std::memory_order_seq_cst); }
  [[nodiscard]] bool rung() const { return summary_.load(std::memory_order_seq_cst) != 0; }

  /// Call it before a ring gets another sender. The last one may have died between its bit and the summary, and
  /// its bit would keep the new sender from setting the summary.
  void clear(std::uint32_t slot) {
    words_[slot / 64].fetch_and(~(std::uint64_t{1} << (slot % 64)), std::memory_order_seq_cst);
  }

  /// Clears all bits; calls `take(word_idx, bits)` for each word that had any.
  template <typename Take>
  void take(Take take) {
    if (summary_.load(std::memory_order_relaxed) == 0) return;
    std::uint64_t summary = summary_.exchange(0, std::memory_order_seq_cst);
    while (summary != 0) {
      const auto word = static_cast<std::uint32_t>(std::countr_zero(summary));
      summary &= summary - 1;
      const std::uint64_t bits = words_[word].exchange(0, std::memory_order_seq_cst);
      if (bits != 0) take(word, bits);
    }
  }

 private:
  std::atomic<std::uint64_t> summary_{0};
  std::atomic<std::uint64_t> sleep_{0};  ///< odd: asleep; each sleep has its own number
  std::array<std::atomic<std::uint64_t>, kNumWords> words_{};
  alignas(64) std::uint64_t last_sleep_ = static_cast<std::uint64_t>(-1);  ///< receiver only; odd
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");
static_assert(Doorbell::kNumWords <= 64, "one summary bit for each word");
static_assert(sizeof(Doorbell) == 576);

}  // namespace hips::shm
