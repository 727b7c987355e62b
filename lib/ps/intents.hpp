#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/ps/row_type.hpp"

namespace hips::ps {

/// Which keys the ranks of a node are going to use, by their clocks: a key is wanted while an intent of one of them for it is
/// current or near.
///
/// Cost     nothing for keys without intents.
/// Threads  one at a time.
class Intents {
 public:
  /// An intent is near this many clocks before it starts: long enough for a row to come, short enough for nodes that take turns.
  static constexpr std::uint64_t kNearClocks = 2;

  explicit Intents(std::size_t num_ranks) : ranks_(num_ranks) {}

  /// The rank is going to use the key while its clock is in [start, end).
  void add(std::size_t rank, Key key, std::uint64_t start, std::uint64_t end);
  /// The rank has ended so many clocks.
  void advance(std::size_t rank, std::uint64_t clock);
  [[nodiscard]] bool wants(Key key) const { return !wanted_.empty() && wanted_.contains(key); }
  [[nodiscard]] std::size_t num_wanted() const { return wanted_.size(); }

  /// Keys that have become wanted, and those that are wanted no more, since the last call; each is in one of them at most once.
  struct Changes {
    std::vector<Key> begun, ended;
  };
  Changes take_changes() { return std::exchange(changes_, {}); }

 private:
  struct OfRank {
    std::uint64_t clock = 0;
    std::map<std::uint64_t, std::vector<std::pair<Key, std::uint64_t>>> later;  ///< by start: key, end
    std::map<std::uint64_t, std::vector<Key>> active;                           ///< by end
    std::unordered_map<Key, std::uint64_t> last_end;                            ///< of active keys
  };
  void begin(OfRank& of, Key key, std::uint64_t end);

  std::vector<OfRank> ranks_;
  std::unordered_map<Key, std::uint32_t> wanted_;  ///< how many ranks want the key
  Changes changes_;
};

}  // namespace hips::ps
