#pragma once

#include <cstddef>
#include <cstdint>

namespace hips::node {

/// The layout of a rank's staging, equal on all ranks of a communicator.
struct StagingLayout {
  std::size_t exchange_bytes = 0;  ///< operands up to this size are read directly by all ranks; two buffers
  std::size_t slice_bytes = 0;     ///< size of a slice, for larger operands
  std::uint32_t num_slices = 0;    ///< number of slices by which a rank may be ahead of the slowest rank

  /// In the piece for exchanges, and in that for slices.
  [[nodiscard]] std::size_t exchange_offset(std::uint64_t call) const;
  [[nodiscard]] std::size_t slice_offset(std::uint64_t slice) const;
  /// Of both, and the rank's block.
  [[nodiscard]] std::size_t segment_bytes() const;

  /// Whether a slice has room for one element of each rank's section, as reduce_scatter needs. This is always
  /// true for numbers. Other collectives need room for one element, which always exists.
  [[nodiscard]] bool holds(std::size_t element_bytes, int num_ranks) const;

  /// Bytes of each rank's section in a slice of a reduce_scatter, in whole cache lines.
  [[nodiscard]] std::size_t piece_bytes(int num_ranks) const;
  /// Number of elements that a reduce_scatter processes without waiting for free slices.
  [[nodiscard]] std::size_t elements_at_once(std::size_t element_bytes, int num_ranks) const;

  static constexpr std::uint32_t kFewSlices = 4;  ///< the number of slices that is fastest for large calls

  /// Chooses a layout of at most `max_bytes` for each rank. More slices than kFewSlices add room, not speed;
  /// they are used only if slices keep their full length. `oversubscribed`: there are more ranks than cores.
  static StagingLayout of(int num_ranks, std::size_t max_bytes, std::uint32_t num_slices = kFewSlices,
                          bool oversubscribed = false);
};

/// A range of elements of a slice.
struct Part {
  std::size_t first = 0, elements = 0;
};

/// The share of rank `rank` in a slice. Shares are whole cache lines and as equal as possible.
Part part_of(std::size_t elements, std::size_t element_bytes, int rank, int num_ranks);

}  // namespace hips::node
