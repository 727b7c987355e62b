#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <hips/status.hpp>

namespace hips::plan {

/// Names a value: the ranks whose inputs it holds, and which of them it holds more than once. Equal values
/// have equal ids.
using ValueId = std::uint32_t;
/// Memory that has not been written.
inline constexpr ValueId kUnwritten = 0;

/// All values that occur while a plan is followed, each kept once.
///
/// A value is a multiset of ranks in which "more than once" is one multiplicity. That is enough to prove that
/// every input is in the sum exactly once, and it limits the number of values.
///
/// Cost     a value takes num_ranks / 8 bytes; a sum that was computed before costs one look-up.
/// Threads  one at a time.
class ContributionPool {
 public:
  /// `max_bytes` limits the memory of values; beyond it sum() returns none.
  ContributionPool(Rank num_ranks, std::size_t max_bytes);

  /// The input of one rank. None: out of memory.
  std::optional<ValueId> of_rank(Rank rank);
  /// The sum of two written values. None: out of memory.
  std::optional<ValueId> sum(ValueId a, ValueId b);

  /// Every rank exactly once.
  [[nodiscard]] bool is_complete(ValueId value) const { return value != kUnwritten && value == complete_; }
  [[nodiscard]] bool has_doubled(ValueId value) const { return (value & kDoubledBit) != 0; }
  [[nodiscard]] bool contains(ValueId value, Rank rank) const;
  [[nodiscard]] bool is_doubled(ValueId value, Rank rank) const;
  [[nodiscard]] std::vector<Rank> ranks(ValueId value) const;
  [[nodiscard]] std::vector<Rank> missing_ranks(ValueId value) const;
  [[nodiscard]] std::vector<Rank> doubled_ranks(ValueId value) const;

 private:
  using Word = std::uint64_t;
  using SetId = std::uint32_t;  ///< a set of ranks; 0 is the empty set
  static constexpr ValueId kDoubledBit = ValueId{1} << 31;
  /// A value in which some ranks are doubled; rare, so it is stored separately.
  struct Doubled {
    SetId present, doubled;
  };
  struct Memo {
    ValueId a = 0, b = 0, sum = 0;
  };
  static constexpr std::size_t kMemoSize = std::size_t{1} << 16;

  [[nodiscard]] const Word* words(SetId set) const {
    return chunks_[set / sets_per_chunk_].get() + (set % sets_per_chunk_) * num_words_;
  }
  [[nodiscard]] Doubled parts(ValueId value) const;
  std::optional<SetId> intern(const std::vector<Word>& set);
  std::optional<ValueId> value_of(SetId present, SetId doubled);
  void grow_table();
  [[nodiscard]] std::uint64_t hash(const Word* set) const;

  Rank num_ranks_;
  std::size_t num_words_, sets_per_chunk_, max_sets_;
  SetId num_sets_ = 0;
  std::vector<std::unique_ptr<Word[]>> chunks_;  ///< never moved: no second copy while growing
  std::vector<SetId> table_;                     ///< open addressing, a power of two; 0 is a free place
  std::vector<Doubled> doubled_;
  std::unordered_map<std::uint64_t, std::uint32_t> doubled_ids_;  ///< (present, doubled) to index
  std::vector<Memo> memo_;
  std::vector<ValueId> of_rank_;
  ValueId complete_;
  std::vector<Word> once_, twice_;  ///< scratch of sum()
};

}  // namespace hips::plan
