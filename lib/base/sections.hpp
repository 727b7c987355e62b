#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hips {

/// How a vector is divided into one section for each rank, in reduce_scatter and allgather (with or without
/// "v").
///
/// Units    elements.
class Sections {
 public:
  /// Sections of `count` elements each.
  Sections(std::size_t num_ranks, std::uint64_t count);
  /// Sections of different lengths. `displacements` says where each section begins in the caller's memory; if
  /// it is empty, sections are contiguous. Displacements may differ between ranks; counts must not.
  explicit Sections(std::span<const std::uint64_t> counts, std::span<const std::uint64_t> displacements = {});

  [[nodiscard]] std::size_t num_ranks() const { return first_.size() - 1; }
  [[nodiscard]] std::uint64_t count(std::size_t rank) const { return first_[rank + 1] - first_[rank]; }
  /// Where the section begins if sections are contiguous.
  [[nodiscard]] std::uint64_t first(std::size_t rank) const { return first_[rank]; }
  [[nodiscard]] std::uint64_t total() const { return first_.back(); }
  [[nodiscard]] std::uint64_t longest() const { return longest_; }
  /// Where the section begins in the caller's memory.
  [[nodiscard]] std::uint64_t displacement(std::size_t rank) const {
    return displacements_.empty() ? first_[rank] : displacements_[rank];
  }
  [[nodiscard]] bool packed() const { return displacements_.empty(); }
  /// The number of elements up to the end of the last section in the caller's memory.
  [[nodiscard]] std::uint64_t extent() const;
  /// A hash of the counts; displacements do not matter.
  [[nodiscard]] std::uint32_t digest() const { return digest_; }

  /// Whether Sections(counts, displacements) would be equal to this.
  [[nodiscard]] bool is_of(std::span<const std::uint64_t> counts,
                           std::span<const std::uint64_t> displacements = {}) const;
  [[nodiscard]] bool same_counts(const Sections& other) const { return first_ == other.first_; }
  friend bool operator==(const Sections&, const Sections&) = default;

 private:
  void sum_up();

  std::vector<std::uint64_t> first_;          ///< by rank; the last entry is the end
  std::vector<std::uint64_t> displacements_;  ///< empty: equal to first_
  std::uint64_t longest_ = 0;
  std::uint32_t digest_ = 0;
};

/// Keeps the last sections that were asked for: making them takes longer than a small call, and the next call often has the same.
///
/// Threads  one at a time.
class SectionsCache {
 public:
  /// Sections of `count` elements each.
  std::shared_ptr<const Sections> of(std::size_t num_ranks, std::uint64_t count);
  /// See Sections().
  std::shared_ptr<const Sections> of(std::span<const std::uint64_t> counts,
                                     std::span<const std::uint64_t> displacements = {});
  void clear() { last_.reset(); }

 private:
  std::shared_ptr<const Sections> last_;
};

}  // namespace hips
