#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>

namespace hips::mpi {

/// How HiPS sees the elements of any type that a function reduces: as `extent` bytes each.
struct ElementLayout {
  std::size_t extent = 0;
  std::size_t end = 0;    ///< bytes from the begin of an element to the end of its data
  bool is_named = false;  ///< the type is predefined, so no call can be refused for it
  bool has_gaps = false;  ///< bytes that are not the type's, which may be others' data and must not change

  /// Bytes from the begin of the first to the end of the data of the last of `count` elements.
  [[nodiscard]] std::size_t bytes(std::size_t count) const {
    return count == 0 ? 0 : (count - 1) * extent + end;
  }
};

/// Asks native MPI. Empty for types whose elements do not lie one behind the other, as at absolute addresses or where
/// they overlap, for those without data, and for those longer than kMaxElementBytes. Padding in a predefined pair of
/// MPI_MINLOC is no gap: it is copied with the pair.
std::optional<ElementLayout> element_layout_of(MPI_Datatype type);

}  // namespace hips::mpi
