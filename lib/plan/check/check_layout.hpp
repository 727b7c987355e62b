#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <hips/plan.hpp>

namespace hips::plan {

/// Elements [begin, end).
struct ElementRange {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// Where blocks are in a vector of a certain number of elements, for the checker.
///
/// All memory of a rank is one line of elements, so that one comparison decides whether two accesses overlap:
///
///   out of place   | input | output | scratch copy 0 | scratch copy 1 | ...     each `count` long
///   in place       | input = output | (unused) | scratch copy 0 | ...
class CheckLayout {
 public:
  /// `map` must have passed check_structure().
  CheckLayout(const BlockMap& map, std::int64_t count);

  /// The smallest number of elements that gives every block with a share at least `per_block`; none if it is
  /// above 2^40.
  static std::optional<std::int64_t> least_count(const BlockMap& map, std::int64_t per_block);

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] bool is_empty(BlockIdx block) const { return boundary_[block] == boundary_[block + 1]; }
  [[nodiscard]] std::int64_t elements(const BufferRange& range) const {
    const BlockIdx first = range.blocks.first % num_blocks_;
    return boundary_[first + range.blocks.count] - boundary_[first];
  }
  [[nodiscard]] ElementRange extent(const BufferRange& range, bool in_place) const;
  /// The block that holds an element of the line.
  [[nodiscard]] BlockIdx block_at(std::int64_t element) const;

 private:
  BlockIdx num_blocks_;
  std::int64_t count_;
  std::vector<std::int64_t> boundary_;
};

}  // namespace hips::plan
