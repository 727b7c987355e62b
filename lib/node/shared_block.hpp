#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/base/os/process_file.hpp"

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

/// The start of the segment that a rank shares with the other ranks of its node; staging follows.
///
/// Only the owner writes the block, with two exceptions: all ranks use `sleepers` and `wake_word` of the
/// first rank, and the rank that wakes the owner clears `asleep`.
///
/// **Two call lines are enough.** A rank overwrites its line of call c with that of call c+2. It has then
/// left call c+1, in which it saw the line of c+1 of every rank. Every rank wrote that line after leaving
/// call c.
struct SharedBlock {
  static constexpr std::uint64_t kMagic = 0x3565646f6e706968;  // "hipnode5"

  std::uint64_t magic = kMagic;
  std::uint64_t bytes = 0;
  std::array<CallLine, 2> lines;
  SliceCount copied;   ///< my operands can be read, in staging or in my buffer (BufferLocations)
  SliceCount reduced;  ///< my part of the result can be read
  SliceCount taken;    ///< I have read everything that I need from the others
  /// Not 0: I have left a failed call and withdrawn my buffers, while others may have been reading them.
  alignas(kApart) std::atomic<std::uint64_t> left{0};
  alignas(kApart) std::atomic<std::uint32_t> sleepers{0};
  alignas(kApart) std::atomic<std::uint32_t> wake_word{
      0};  ///< futex word: it changes when sleepers may have to wake
  alignas(kApart) std::atomic<std::uint32_t> asleep{0};  ///< 1: the owner sleeps on its wake pipe
  ProcessFile wake_pipe;                                 ///< empty if the owner sleeps on `wake_word`
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

}  // namespace hips::node
