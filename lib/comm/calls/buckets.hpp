#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <hips/types.hpp>

namespace hips::comm {

/// One of many vectors that are reduced together; in place where `in` and `out` are equal.
struct CoalescedBuffer {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t count = 0;
  DataType type = DataType::kFloat32;
  std::int32_t priority = 0;  ///< lower goes first
};

/// Groups many vectors into few calls. Small ones of one type are packed into buckets; large ones are reduced
/// where they are. A small one waits for others while at most kMostPassed large ones overtake it.
///
/// Threads  pure; any thread.
namespace buckets {

inline constexpr std::size_t kBytes = 1U << 20U;  ///< of a bucket
inline constexpr std::size_t kSmallBytes = 64U
                                           << 10U;  ///< above this a call of its own costs less than copies
inline constexpr int kMostPassed = 8;

inline std::size_t bytes_of(const CoalescedBuffer& buffer) {
  return static_cast<std::size_t>(buffer.count) * size_of(buffer.type);
}

/// Puts the list, which is sorted by priority, into the order and groups in which calls are started: calls
/// `launch(std::span<const CoalescedBuffer>)` for each. Depends on counts, types and priorities only, so that
/// all ranks get the same.
///
/// Owns     `small` is scratch memory; empty at the end.
template <typename Launch>
void for_each(std::span<const CoalescedBuffer> sorted, std::vector<CoalescedBuffer>& small, Launch launch) {
  std::size_t small_bytes = 0;
  int passed = 0;
  const auto launch_small = [&] {
    if (!small.empty()) launch(std::span<const CoalescedBuffer>(small));
    small.clear();
    small_bytes = 0;
    passed = 0;
  };
  for (const CoalescedBuffer& buffer : sorted) {
    const std::size_t bytes = bytes_of(buffer);
    if (bytes > kSmallBytes) {
      launch(std::span(&buffer, 1));
      if (!small.empty() && ++passed == kMostPassed) launch_small();
      continue;
    }
    if (!small.empty() && (buffer.type != small[0].type || small_bytes + bytes > kBytes)) launch_small();
    small.push_back(buffer);
    small_bytes += bytes;
  }
  launch_small();
}

/// Copies the inputs of a bucket one after the other; returns the number of elements.
inline std::uint64_t pack(std::span<const CoalescedBuffer> buffers, std::byte* to) {
  std::uint64_t count = 0;
  for (const CoalescedBuffer& buffer : buffers) {
    if (buffer.count == 0) continue;
    std::memcpy(to, buffer.in, bytes_of(buffer));
    to += bytes_of(buffer);
    count += buffer.count;
  }
  return count;
}

/// Copies the results of a bucket to the outputs.
inline void unpack(std::span<const CoalescedBuffer> buffers, const std::byte* from) {
  for (const CoalescedBuffer& buffer : buffers) {
    if (buffer.count == 0) continue;
    std::memcpy(buffer.out, from, bytes_of(buffer));
    from += bytes_of(buffer);
  }
}

}  // namespace buckets
}  // namespace hips::comm
