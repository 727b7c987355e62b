#pragma once

#include <cstddef>
#include <cstdint>

namespace hips::node {

/// How the staging of a rank is cut, the same on all ranks of a communicator.
struct StagingLayout {
  std::size_t exchange_bytes = 0;  ///< operands up to this size are read by all ranks directly; twice
  std::size_t slice_bytes = 0;     ///< larger ones go slice by slice
  std::uint32_t num_slices = 0;    ///< that a rank may be ahead of the slowest

  [[nodiscard]] std::size_t exchange_offset(std::uint64_t call) const;
  [[nodiscard]] std::size_t slice_offset(std::uint64_t slice) const;
  [[nodiscard]] std::size_t segment_bytes() const;

  /// Does a slice hold an element of each rank's section, as a reduce_scatter wants? Of numbers it does; any
  /// other call asks for room for one element, which is there.
  [[nodiscard]] bool holds(std::size_t element_bytes, int num_ranks) const;

  /// Of each rank's section in a slice of what is to be folded, on lines of its own.
  [[nodiscard]] std::size_t piece_bytes(int num_ranks) const;
  /// Elements of a vector that a reduce_scatter moves without waiting for room.
  [[nodiscard]] std::size_t elements_at_once(std::size_t element_bytes, int num_ranks) const;

  static constexpr std::uint32_t kFewSlices = 4;  ///< with which large calls take the least time

  /// Within `max_bytes` of staging for each rank. More slices than few ones are for room, not for speed: they
  /// are of full length, or there are few. Ranks that are `crowded` outnumber their cores.
  static StagingLayout of(int num_ranks, std::size_t max_bytes, std::uint32_t num_slices = kFewSlices,
                          bool crowded = false);
};

/// A run of elements of a slice.
struct Part {
  std::size_t first = 0, elements = 0;
};

/// Rank `rank`'s share of a slice: as equal as whole cache lines allow.
Part part_of(std::size_t elements, std::size_t element_bytes, int rank, int num_ranks);

}  // namespace hips::node
