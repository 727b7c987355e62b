#pragma once

#include <algorithm>
#include <iterator>
#include <map>

#include <hips/plan.hpp>

namespace hips::plan {

/// A set of blocks as disjoint ranges: small however many blocks a plan has.
///
/// Cost     a logarithm of the ranges for each call, and the ranges that a call takes out.
class BlockSet {
 public:
  void insert(BlockRange range) {
    if (range.count <= 0) return;
    auto [first, end] = extent_of(range);
    ends_.erase(ends_.lower_bound(first), ends_.upper_bound(end));
    ends_[first] = end;
  }

  void erase(BlockRange range) {
    if (range.count <= 0) return;
    auto at = ends_.upper_bound(range.first);
    if (at != ends_.begin()) --at;
    while (at != ends_.end() && at->first < range.end()) {
      const auto [first, end] = *at;
      if (end <= range.first) {
        ++at;
        continue;
      }
      at = ends_.erase(at);
      if (first < range.first) ends_[first] = range.first;
      if (end > range.end()) ends_[range.end()] = end;
    }
  }

  [[nodiscard]] bool has_all(BlockRange range) const {
    const auto after = ends_.upper_bound(range.first);
    return range.count <= 0 || (after != ends_.begin() && std::prev(after)->second >= range.end());
  }

  [[nodiscard]] bool has_any(BlockRange range) const {
    const auto after = ends_.lower_bound(range.end());
    return range.count > 0 && after != ends_.begin() && std::prev(after)->second > range.first;
  }

 private:
  /// [first, end) of a range together with those that it overlaps or touches.
  [[nodiscard]] std::pair<BlockIdx, BlockIdx> extent_of(BlockRange range) const {
    BlockIdx first = range.first, end = range.end();
    if (auto before = ends_.upper_bound(first); before != ends_.begin()) {
      --before;
      if (before->second >= first) first = before->first;
    }
    if (auto last = ends_.upper_bound(end); last != ends_.begin())
      end = std::max(end, std::prev(last)->second);
    return {first, end};
  }

  std::map<BlockIdx, BlockIdx> ends_;  ///< by first block
};

}  // namespace hips::plan
