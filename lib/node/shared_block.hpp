#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace hips::node {

/// The unit of transfer between cores.
inline constexpr std::size_t kLine = 64;
/// Two lines, because the CPU prefetches lines in pairs.
inline constexpr std::size_t kApart = 2 * kLine;

/// Identifies the arguments of a call, for comparison between ranks.
struct Signature {
  std::uint64_t shape = 0;   ///< count, type, op
  std::uint64_t detail = 0;  ///< collective, root or digest of sections
  friend bool operator==(const Signature&, const Signature&) = default;
};

/// A rank's announcement of one call: its number, its signature and the operands, if they fit. A few operands
/// share the first cache line. A call by slices has the locations of its buffers (BufferLocations) in place
/// of operands.
struct alignas(kApart) CallLine {
  static constexpr std::size_t kInlineBytes = 480;

  std::atomic<std::uint64_t> call{0};  ///< number of the call: 1, 2, ...; stored last
  Signature signature;
  /// Aligned as memory of malloc(), for reduction functions of the program.
  alignas(std::max_align_t) std::array<std::byte, kInlineBytes> operands{};
};
static_assert(sizeof(CallLine) == 4 * kApart, "no room is left over");

/// Number of slices that a rank has finished, over all calls.
struct alignas(kApart) SliceCount {
  std::atomic<std::uint64_t> value{0};
};

/// A place in a process's segment, from its beginning; 0 is none.
using PoolRef = std::uint64_t;

/// A set of ranks below kMost.
class RankBits {
 public:
  static constexpr int kMost = 256;

  void add(int rank) {
    if (rank < kMost) word(rank).fetch_or(bit(rank), std::memory_order_seq_cst);
  }
  /// Removes a rank; true for the one that does.
  bool take(int rank) {
    return rank < kMost && (word(rank).fetch_and(~bit(rank), std::memory_order_seq_cst) & bit(rank)) != 0;
  }
  [[nodiscard]] int count() const {
    int number = 0;
    for (const auto& each : words_) number += std::popcount(each.load(std::memory_order_seq_cst));
    return number;
  }
  void clear() {
    for (auto& each : words_) each.store(0, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] std::atomic<std::uint64_t>& word(int rank) {
    return words_[static_cast<std::size_t>(rank) / 64];
  }
  static constexpr std::uint64_t bit(int rank) {
    return std::uint64_t{1} << (static_cast<unsigned>(rank) % 64);
  }
  std::array<std::atomic<std::uint64_t>, kMost / 64> words_{};
};

struct Piece {
  PoolRef at = 0;
  std::uint64_t bytes = 0;
};

/// What a rank of one communicator shares with the other ranks of its node: a piece of its process's segment, found by
/// the communicator's id (NodeSegment). Only the owner writes it, with two exceptions: the others mark `closed_by`, and all
/// ranks use `sleepers` and `wake_word` of the first rank.
///
/// **Two call lines are enough.** A rank overwrites its line of call c with that of call c+2. It has then
/// left call c+1, in which it saw the line of c+1 of every rank. Every rank wrote that line after leaving
/// call c.
struct alignas(kApart) SharedBlock {
  std::atomic<std::uint64_t> id{0};   ///< of the communicator
  std::atomic<PoolRef> next{0};       ///< the next block in the same chain of the directory
  std::uint64_t layout_bytes = 0;     ///< for comparison between ranks
  Piece exchange;                     ///< staging of calls at once; taken before the first such call
  Piece slices;                       ///< staging of calls by slices; likewise
  PoolRef self = 0, next_closed = 0;  ///< for the owner
  std::int32_t size = 0;              ///< number of ranks
  RankBits closed_by;                 ///< ranks that read this block no more
  RankBits missed;                    ///< ranks that the owner may have missed when it closed this one

  std::array<CallLine, 2> lines;
  SliceCount copied;   ///< my operands can be read, in staging or in my buffer (BufferLocations)
  SliceCount reduced;  ///< my part of the result can be read
  SliceCount taken;    ///< I have read everything that I need from the others
  /// Not 0: I have left a failed call and withdrawn my buffers, while others may have been reading them.
  alignas(kApart) std::atomic<std::uint64_t> left{0};
  alignas(kApart) std::atomic<std::uint32_t> sleepers{0};
  alignas(kApart) std::atomic<std::uint32_t> wake_word{
      0};  ///< futex word: it changes when sleepers may have to wake

  /// As new. Others may still look at `id` and `next` on their way along a chain that has changed.
  void reset() {
    layout_bytes = 0;
    exchange = slices = {};
    closed_by.clear();
    missed.clear();
    for (CallLine& line : lines) line.call.store(0, std::memory_order_relaxed);
    for (SliceCount* count : {&copied, &reduced, &taken}) count->value.store(0, std::memory_order_relaxed);
    left.store(0, std::memory_order_relaxed);
    sleepers.store(0, std::memory_order_relaxed);
  }
};
static_assert(sizeof(SharedBlock) <= 2048, "a communicator costs a node half a page");

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

}  // namespace hips::node
