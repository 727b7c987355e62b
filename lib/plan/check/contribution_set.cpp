#include "lib/plan/check/contribution_set.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace hips::plan {

// Set 0 is the empty set. Value 0 is kUnwritten: no written value is empty, so the number is free for it. A
// value without doubled ranks has the number of its set; any other value has kDoubledBit and an index of
// doubled_.

ContributionPool::ContributionPool(Rank num_ranks, std::size_t max_bytes)
    : num_ranks_(num_ranks),
      num_words_((static_cast<std::size_t>(num_ranks) + 63) / 64),
      sets_per_chunk_(std::max<std::size_t>(1, (std::size_t{1} << 17) / num_words_)),
      max_sets_(std::min<std::size_t>(max_bytes / (num_words_ * sizeof(Word)), kDoubledBit - 1)),
      table_(1024, 0),
      memo_(kMemoSize),
      of_rank_(static_cast<std::size_t>(num_ranks), kUnwritten),
      once_(num_words_),
      twice_(num_words_) {
  // The empty set has number 0 and is not in the table. The full set is added at the start, so that a
  // complete value is known by its number.
  max_sets_ = std::max<std::size_t>(max_sets_, 2);
  chunks_.push_back(std::make_unique<Word[]>(sets_per_chunk_ * num_words_));
  num_sets_ = 1;
  std::vector<Word> full(num_words_, ~Word{0});
  if (num_ranks % 64 != 0) full.back() = (Word{1} << (num_ranks % 64)) - 1;
  complete_ = *intern(full);
}

std::optional<ValueId> ContributionPool::of_rank(Rank rank) {
  ValueId& value = of_rank_[rank];
  if (value == kUnwritten) {
    std::vector<Word> set(num_words_, 0);
    set[rank / 64] = Word{1} << (rank % 64);
    const std::optional<SetId> id = intern(set);
    if (!id) return std::nullopt;
    value = *id;
  }
  return value;
}

std::optional<ValueId> ContributionPool::sum(ValueId a, ValueId b) {
  if (a > b) std::swap(a, b);
  Memo& memo = memo_[(a * std::size_t{0x9E3779B1} ^ b * std::size_t{0x85EBCA6B}) >> 5 & (kMemoSize - 1)];
  if (memo.a == a && memo.b == b) return memo.sum;
  const Doubled left = parts(a);
  const Doubled right = parts(b);
  Word any_twice = 0;
  for (std::size_t i = 0; i < num_words_; ++i) {
    const Word x = words(left.present)[i];
    const Word y = words(right.present)[i];
    once_[i] = x | y;
    twice_[i] = (x & y) | words(left.doubled)[i] | words(right.doubled)[i];
    any_twice |= twice_[i];
  }
  const std::optional<SetId> present = intern(once_);
  const std::optional<SetId> doubled = any_twice == 0 ? std::optional<SetId>(0) : intern(twice_);
  if (!present || !doubled) return std::nullopt;
  const std::optional<ValueId> value = value_of(*present, *doubled);
  if (value) memo = {a, b, *value};
  return value;
}

bool ContributionPool::contains(ValueId value, Rank rank) const {
  return value != kUnwritten && (words(parts(value).present)[rank / 64] >> (rank % 64) & 1) != 0;
}

bool ContributionPool::is_doubled(ValueId value, Rank rank) const {
  return has_doubled(value) && (words(parts(value).doubled)[rank / 64] >> (rank % 64) & 1) != 0;
}

std::vector<Rank> ContributionPool::ranks(ValueId value) const {
  std::vector<Rank> found;
  for (Rank rank = 0; rank < num_ranks_; ++rank) {
    if (contains(value, rank)) found.push_back(rank);
  }
  return found;
}

std::vector<Rank> ContributionPool::missing_ranks(ValueId value) const {
  std::vector<Rank> found;
  for (Rank rank = 0; rank < num_ranks_; ++rank) {
    if (!contains(value, rank)) found.push_back(rank);
  }
  return found;
}

std::vector<Rank> ContributionPool::doubled_ranks(ValueId value) const {
  std::vector<Rank> found;
  for (Rank rank = 0; rank < num_ranks_; ++rank) {
    if (is_doubled(value, rank)) found.push_back(rank);
  }
  return found;
}

ContributionPool::Doubled ContributionPool::parts(ValueId value) const {
  return has_doubled(value) ? doubled_[value & ~kDoubledBit] : Doubled{value, 0};
}

std::optional<ContributionPool::SetId> ContributionPool::intern(const std::vector<Word>& set) {
  const std::size_t mask = table_.size() - 1;
  std::size_t place = hash(set.data()) & mask;
  for (; table_[place] != 0; place = (place + 1) & mask) {
    if (std::memcmp(words(table_[place]), set.data(), num_words_ * sizeof(Word)) == 0) return table_[place];
  }
  if (num_sets_ >= max_sets_) return std::nullopt;
  const SetId id = num_sets_++;
  if (id / sets_per_chunk_ >= chunks_.size()) {
    // Not initialised: pages are touched only when sets are added.
    chunks_.push_back(std::unique_ptr<Word[]>(new Word[sets_per_chunk_ * num_words_]));
  }
  std::copy(set.begin(), set.end(),
            chunks_[id / sets_per_chunk_].get() + (id % sets_per_chunk_) * num_words_);
  table_[place] = id;
  if (num_sets_ * std::size_t{2} > table_.size()) grow_table();
  return id;
}

std::optional<ValueId> ContributionPool::value_of(SetId present, SetId doubled) {
  if (doubled == 0) return present;
  // Doubled values are errors; a plan with very many of them is not followed to the end.
  if (doubled_.size() >= max_sets_) return std::nullopt;
  const auto [known, is_new] = doubled_ids_.try_emplace(std::uint64_t{present} << 32 | doubled,
                                                        static_cast<std::uint32_t>(doubled_.size()));
  if (is_new) doubled_.push_back({present, doubled});
  return kDoubledBit | known->second;
}

void ContributionPool::grow_table() {
  std::vector<SetId> old(table_.size() * 2, 0);
  table_.swap(old);
  const std::size_t mask = table_.size() - 1;
  for (SetId id : old) {
    if (id == 0) continue;
    std::size_t place = hash(words(id)) & mask;
    while (table_[place] != 0) place = (place + 1) & mask;
    table_[place] = id;
  }
}

std::uint64_t ContributionPool::hash(const Word* set) const {
  std::uint64_t hash = 0x9E3779B97F4A7C15;
  for (std::size_t i = 0; i < num_words_; ++i) {
    hash = std::rotl((hash ^ set[i]) * 0xBF58476D1CE4E5B9, 29);
  }
  return hash ^ hash >> 32;
}

}  // namespace hips::plan
