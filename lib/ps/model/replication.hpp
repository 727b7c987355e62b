#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/ps/mail.hpp"
#include "lib/ps/model/model_mail.hpp"
#include "lib/ps/model/part_sender.hpp"
#include "lib/ps/model/shards.hpp"
#include "lib/ps/rank_places.hpp"

/// Replicas of a model's shards, on other nodes. A replica lacks some of the groups of its shard; the sum of their norms, the
/// divergence, is at most a limit. The node that has sent a group to the shard keeps it, and sends it to the replica when the shard's
/// node wants room: groups of a node together, as one sum. So the shard's node sends nothing for it.
///
///     shard's node   ---kFlush: these groups--->  their sender  ---kReplica: their sum--->  replica's node
///                    <----------------- kStored, to the shard's node and to the sender -----------------
///
/// Source  MLfabric (BML 2018), section 5: bounded divergence, replicas that aggregators update.
namespace hips::ps {

/// A group of updates: its number, and the rank and number of its last update.
using GroupId = std::tuple<std::uint64_t, Rank, std::uint32_t>;

inline GroupId group_of(const ModelHead& head) {
  return {head.number, head.rank, head.update};
}

/// The node with the replica of a shard: one without a shard, where there is one. -1: there is only one node.
inline std::int32_t replica_node(const RankPlaces& places, const Shards& shards, std::int32_t shard) {
  const std::int32_t num_nodes = places.num_nodes();
  if (num_nodes == 1) return -1;
  return (shard + (shards.num < num_nodes ? shards.num : 1)) % num_nodes;
}

/// The Euclidean norm.
double norm_of(DataType type, std::span<const std::byte> values);

/// On the shard's node: what the replica lacks, and whether a group may be applied.
///
/// Threads  one at a time.
class Divergence {
 public:
  /// Groups of a sender that the replica lacks, at most: each takes a vector of the shard's size there.
  static constexpr std::size_t kMostGroups = 8;

  /// Groups that a sender is to send to the replica, as one sum.
  struct Flush {
    Rank sender = -1;  ///< its node's service
    std::uint64_t number = 0;
    std::vector<GroupId> groups;
  };

  explicit Divergence(double limit) : limit_(limit) {}

  /// Whether the group may be applied now; it is from then on, unless it has been stored before. If not, `flushes` make room, and
  /// no other group may be applied before: ask again after stored().
  bool admits(GroupId group, Rank sender, double norm, std::vector<Flush>& flushes);
  /// The replica has the groups of a flush.
  void stored(std::uint64_t flush);
  /// The norms of the groups that are applied and not stored, or the other way round.
  [[nodiscard]] double value() const;

 private:
  struct Group {
    GroupId id;
    Rank sender = -1;
    double norm = 0;
    std::uint64_t flush = 0;  ///< that it is part of; 0: none
    bool is_applied = false, is_stored = false;
  };
  void flush(Rank sender, std::vector<Flush>& flushes);

  double limit_;
  std::uint64_t num_flushes_ = 0;
  std::vector<Group> groups_;  ///< in the order in which they came
};

/// On a node that sends groups to shards: the groups that the replicas may lack.
///
/// Threads  one at a time.
class SentGroups {
 public:
  using Vector = std::shared_ptr<PartialVector>;

  /// `sum` becomes whole.
  void keep(std::uint16_t shard, GroupId group, Vector sum) { kept_[{shard, group}].sum = std::move(sum); }
  /// kFlush. With the last of a flush: the sum to send.
  ///
  /// Errors   kMismatch: a group is not here.
  Result<Vector> on_flush(const ModelHead& head, const Shards& shards);
  /// kStored
  void on_stored(const ModelHead& head);

  /// The update was handed back.
  void drop(std::uint16_t shard, GroupId group) { kept_.erase({shard, group}); }

  /// Adds the groups of a shard that its replica lacks, where that has this node's flushes up to `stored`.
  void add_missing(std::span<std::byte> to, DataType type, std::uint16_t shard, std::uint64_t stored) const;

 private:
  struct Kept {
    Vector sum;
    std::uint64_t flush = 0;
  };
  std::map<std::pair<std::uint16_t, GroupId>, Kept> kept_;
};

/// On the replica's node.
///
/// Threads  one at a time.
class ShardReplica {
 public:
  ShardReplica(std::uint16_t shard, std::vector<std::byte> first)
      : shard_(shard), values_(std::move(first)) {}

  /// kReplica. True: all parts of the sum are here, and added.
  Result<bool> on_part(const ModelMessage& message, DataType type);

  [[nodiscard]] std::uint16_t shard() const { return shard_; }
  [[nodiscard]] const std::vector<std::byte>& values() const { return values_; }
  /// By sender: the last flush that is in the values. A sender sends one after the other.
  [[nodiscard]] const std::map<Rank, std::uint64_t>& stored() const { return stored_; }

 private:
  struct Arriving {
    std::vector<std::byte> sum;
    std::size_t received = 0;
  };
  std::uint16_t shard_;
  std::vector<std::byte> values_;
  std::map<Rank, Arriving> arriving_;  ///< by sender
  std::map<Rank, std::uint64_t> stored_;
};

}  // namespace hips::ps
