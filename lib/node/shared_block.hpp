#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/base/os/process_file.hpp"

namespace hips::node {

/// What cores hand each other at a time.
inline constexpr std::size_t kLine = 64;
/// Two lines: the CPU fetches them in pairs.
inline constexpr std::size_t kApart = 2 * kLine;

/// Tells two calls apart, and says what they were.
struct Signature {
  std::uint64_t shape = 0;   ///< count, type, op
  std::uint64_t detail = 0;  ///< collective, root or digest of sections
  friend bool operator==(const Signature&, const Signature&) = default;
};

/// What a rank says of one call: its number and signature and, where they fit, the operands themselves, in
/// the same cache line if they are few and in the next ones if not. Of a call that goes slice by slice, where
/// they lie instead (Places).
struct alignas(kApart) CallLine {
  static constexpr std::size_t kInlineBytes = 480;

  std::atomic<std::uint64_t> call{0};  ///< stored last; 1, 2, ...
  Signature signature;
  /// Aligned for functions of the program, which take their elements to be as malloc() would align them.
  alignas(std::max_align_t) std::array<std::byte, kInlineBytes> operands{};
};
static_assert(sizeof(CallLine) == 4 * kApart, "no room is left over");

/// Slices that a rank is through with, counted over all calls.
struct alignas(kApart) SliceCount {
  std::atomic<std::uint64_t> value{0};
};

/// The start of the segment that a rank shares with the others of its host; `data` follows.
///
/// Everything is written by its owner alone, but for `sleepers` and `bell` of the first rank, which all use,
/// and `at_door`, which whoever rings takes back.
///
/// **Two call lines are enough.** A rank writes its line of call c+2 over that of call c. It has then left
/// call c+1, for which it saw everybody's line of c+1, and everybody wrote that after leaving call c.
struct SharedBlock {
  static constexpr std::uint64_t kMagic = 0x3565646f6e706968;  // "hipnode5"

  std::uint64_t magic = kMagic;
  std::uint64_t bytes = 0;
  std::array<CallLine, 2> lines;
  SliceCount copied;   ///< my operands can be read: in staging, or in my buffer where its Place is shown
  SliceCount reduced;  ///< so can my part of the result
  SliceCount taken;    ///< I have read all that I need of the others
  /// Not 0: I have left a call that failed, and with it buffers that others may have been reading.
  alignas(kApart) std::atomic<std::uint64_t> left{0};
  alignas(kApart) std::atomic<std::uint32_t> sleepers{0};
  alignas(kApart) std::atomic<std::uint32_t> bell{0};     ///< changes whenever somebody may have to be woken
  alignas(kApart) std::atomic<std::uint32_t> at_door{0};  ///< 1: the owner sleeps until its door is rung
  ProcessFile door;                                       ///< none where the owner sleeps on `bell`
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

}  // namespace hips::node
