#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hips {

/// How a vector is made of a section for each rank: of reduce_scatter and allgather, with or without "v".
///
/// Units    elements.
class Sections {
 public:
  /// Sections of `count` elements each.
  Sections(std::size_t num_ranks, std::uint64_t count);
  /// Sections of their own lengths. `places` says where each begins in the caller's memory; empty: one behind
  /// the other. Where sections lie is each rank's own affair, how long they are is not.
  explicit Sections(std::span<const std::uint64_t> counts, std::span<const std::uint64_t> places = {});

  [[nodiscard]] std::size_t num_ranks() const { return first_.size() - 1; }
  [[nodiscard]] std::uint64_t count(std::size_t rank) const { return first_[rank + 1] - first_[rank]; }
  /// Where the section begins when all stand one behind the other.
  [[nodiscard]] std::uint64_t first(std::size_t rank) const { return first_[rank]; }
  [[nodiscard]] std::uint64_t total() const { return first_.back(); }
  [[nodiscard]] std::uint64_t longest() const { return longest_; }
  /// Where the section begins in the caller's memory.
  [[nodiscard]] std::uint64_t place(std::size_t rank) const {
    return places_.empty() ? first_[rank] : places_[rank];
  }
  [[nodiscard]] bool packed() const { return places_.empty(); }
  /// The end of the caller's memory.
  [[nodiscard]] std::uint64_t extent() const;
  /// The same for the same counts, and most likely for no others; places do not count.
  [[nodiscard]] std::uint32_t digest() const { return digest_; }

  /// Would Sections(counts, places) be equal to this?
  [[nodiscard]] bool is_of(std::span<const std::uint64_t> counts,
                           std::span<const std::uint64_t> places = {}) const;
  [[nodiscard]] bool same_counts(const Sections& other) const { return first_ == other.first_; }
  friend bool operator==(const Sections&, const Sections&) = default;

 private:
  void sum_up();

  std::vector<std::uint64_t> first_;   ///< by rank, and at last the end
  std::vector<std::uint64_t> places_;  ///< empty: as first_
  std::uint64_t longest_ = 0;
  std::uint32_t digest_ = 0;
};

}  // namespace hips
