#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "lib/exec/token.hpp"

namespace hips::exec {

class EngineTeam;

/// Maps the slot number of a notification to a channel of a team.
///
/// A slot gets a new generation each time it is released. A late notification for a team that is gone is
/// thereby recognised and dropped.
class SlotTable {
 public:
  static constexpr std::int32_t kCredits = -1, kGrant = -2;
  struct Entry {
    EngineTeam* team = nullptr;
    std::int32_t channel = -1;
    std::int32_t index = kCredits;  ///< slot of the in-channel, or kCredits or kGrant for an out-channel
    std::uint8_t generation = 0;
  };

  /// Allocates `count` consecutive slots. Returns the first, or -1 if there is no room (2^20 slots at most).
  std::int64_t allocate(std::uint32_t count) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < count) continue;
      const std::uint32_t first = it->first;
      const std::uint32_t rest = it->second - count;
      free_.erase(it);
      if (rest > 0) free_.emplace(first + count, rest);
      return first;
    }
    if (entries_.size() + count > SlotToken::kMaxSlots) return -1;
    const auto first = static_cast<std::int64_t>(entries_.size());
    entries_.resize(entries_.size() + count);
    return first;
  }

  void release(std::uint32_t first, std::uint32_t count) {
    if (count == 0) return;
    for (std::uint32_t i = first; i < first + count; ++i) {
      entries_[i].team = nullptr;
      ++entries_[i].generation;
    }
    auto next = free_.emplace(first, count).first;
    if (auto after = std::next(next); after != free_.end() && next->first + next->second == after->first) {
      next->second += after->second;
      free_.erase(after);
    }
    if (next != free_.begin()) {
      if (auto before = std::prev(next); before->first + before->second == next->first) {
        before->second += next->second;
        free_.erase(next);
      }
    }
  }

  Entry& operator[](std::uint32_t slot) { return entries_[slot]; }
  /// The entry that a token names; null if the slot is out of range, free, or of another generation.
  Entry* find(SlotToken token) {
    if (token.slot >= entries_.size()) return nullptr;
    Entry& entry = entries_[token.slot];
    return entry.team != nullptr && entry.generation == token.generation ? &entry : nullptr;
  }

 private:
  std::vector<Entry> entries_;
  std::map<std::uint32_t, std::uint32_t> free_;  ///< first -> count, neighbours merged
};

}  // namespace hips::exec
