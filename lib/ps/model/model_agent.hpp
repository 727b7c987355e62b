#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/trace.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/ps/mail.hpp"
#include "lib/ps/model/model_mail.hpp"
#include "lib/ps/model/part_sender.hpp"
#include "lib/ps/model/replication.hpp"
#include "lib/ps/model/shards.hpp"
#include "lib/ps/model/update_scheduler.hpp"
#include "lib/ps/rank_places.hpp"

namespace hips::ps {

/// A node's part in a model: keeps its shard, sends the updates of its ranks, adds them to those of other nodes that pass, and
/// passes values on. On the rank that serves the node.
///
/// Cost     memory: the shard, a copy of it for each version that is being sent, and a vector of its size for each group or
///          unscheduled update that arrives; for each outstanding push of a local rank up to twice the update; values that are being
///          passed on.
/// Threads  one at a time.
/// Errors   kMismatch, kInternal: the mail cannot be; the model has then failed.
class ModelAgent {
 public:
  struct Options {
    Rank rank = 0;
    RankPlaces places;
    Shards shards;
    std::uint64_t delay_max = UINT64_MAX;
    /// Shards of at least so many bytes are sent as the scheduler says; others at once.
    std::uint64_t least_scheduled_bytes = 0;
    std::span<const std::byte> first;  ///< values of the model; used by the constructor
    /// Of each shard from its replica, at most; negative: there are no replicas.
    double divergence_max = -1;
    TraceSink* trace = nullptr;  ///< for what the scheduler decides; null: no trace
    std::uint64_t id = 0;        ///< of the model, in the trace
  };

  ModelAgent(Options options, Mail& mail, const Clock& clock);

  Status on_mail(const ModelMessage& message);
  /// Sends what there is room for; true if there was anything.
  bool advance();

  // What is left of shards, once it does nothing any more.

  /// The node's shard; empty: it has none.
  [[nodiscard]] const std::vector<std::byte>& values() const { return values_; }
  /// Updates that the shard contains.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// The node's replica of another node's shard; null: it has none.
  [[nodiscard]] const ShardReplica* replica() const { return replica_ ? &*replica_ : nullptr; }
  [[nodiscard]] const SentGroups& sent() const { return sent_; }
  /// Of the node's shard from its replica.
  [[nodiscard]] double divergence() const { return divergence_ ? divergence_->value() : 0; }

  /// Updates, groups and values that are kept until something else comes.
  [[nodiscard]] std::size_t num_held() const {
    return updates_.size() + arriving_.size() + expected_.size() + passing_.size();
  }

 private:
  using Vector = std::shared_ptr<PartialVector>;
  /// An update: whose, its number, its shard.
  using UpdateId = std::tuple<Rank, std::uint32_t, std::uint16_t>;
  /// An update of a local rank, to which the sum of the members before is added.
  struct OwnUpdate {
    Vector sum;
    bool joined = false;
    std::vector<std::byte> early;  ///< of that sum, until the update has joined
  };
  /// A group that arrives at the shard.
  struct Arriving {
    std::vector<std::byte> sum;
    std::size_t received = 0;
    std::uint64_t version = 0;  ///< of the shard, that the rank of an unscheduled update has read
  };
  /// A group that the scheduler has announced and that is not applied yet.
  struct Expected {
    std::uint64_t number = 0;
    std::uint64_t num_updates = 0;
    std::uint64_t may_overtake = 0;  ///< updates of later groups, so that no delay is above its limit
  };
  /// Values that are passed on.
  struct Passing {
    Vector values;
    std::uint64_t version = 0;
    bool knows_next = false;
    Rank next = -1;
  };
  /// Ranks of this node that want a shard's values, each with the number of its call.
  using Wanting = std::vector<std::pair<Rank, std::uint32_t>>;
  struct Fetching {
    Wanting waiting, asked;
  };

  [[nodiscard]] bool is_local(std::uint16_t shard) const {
    return options_.places.service_of[shard] == options_.rank;
  }
  [[nodiscard]] bool is_scheduled(std::uint16_t shard) const {
    return options_.shards.bytes(shard) >= options_.least_scheduled_bytes;
  }
  [[nodiscard]] Rank scheduler() const { return options_.places.service_of[0]; }
  [[nodiscard]] Status check(const ModelMessage& message) const;
  [[nodiscard]] Vector empty_vector(std::uint16_t shard) const;
  [[nodiscard]] std::vector<std::byte> first_of(std::uint16_t shard) const;
  Vector copy_of_shard();
  void add(std::byte* to, const std::byte* part, std::size_t bytes) const;

  Status on_update(const ModelMessage& message);
  Status on_join(const ModelHead& head);
  Status on_sum(const ModelMessage& message);
  Status add_to_own(UpdateId id, OwnUpdate& own, std::span<const std::byte> part);
  Status on_sum_of_shard(const ModelMessage& message);
  void apply(std::span<const std::byte> sum, std::uint64_t num_updates);
  void apply_what_is_here();
  void apply_unscheduled();
  bool admits(GroupId group, const Arriving& arriving);
  void keep_for_replica(const ModelHead& head, Vector sum);
  Status on_mail_of_replicas(const ModelMessage& message);
  void on_fetch(const ModelHead& head);
  void ask(std::uint16_t shard);
  Status on_ask(const ModelHead& head);
  Status on_relay(const ModelHead& head);
  Status on_values(const ModelMessage& message);
  void pass_on(std::uint16_t shard, std::uint64_t number, Passing& passing);
  void end_passing(std::uint16_t shard, std::uint64_t number);
  void deliver(std::uint16_t shard, const Wanting& to, const Vector& values, std::uint64_t version);

  Options options_;
  Mail& mail_;
  PartSender to_nodes_, to_ranks_;
  std::optional<UpdateScheduler> scheduler_;
  std::uint16_t shard_ = 0;            ///< the node's, if it has one
  std::vector<std::byte> values_;      ///< of that shard
  std::uint64_t version_ = 0;          ///< updates that it contains
  std::weak_ptr<PartialVector> copy_;  ///< of the values, while somebody is sent them
  std::uint64_t copied_version_ = 0;
  std::vector<Expected> expected_;  ///< in their order
  std::map<GroupId, Arriving> arriving_;
  std::vector<GroupId>
      complete_;  ///< of those: unscheduled updates that are here, in the order in which they came
  std::map<UpdateId, OwnUpdate> updates_;
  std::map<std::pair<std::uint16_t, std::uint64_t>, Passing> passing_;  ///< by shard and number
  std::vector<Fetching> fetching_;                                      ///< by shard
  std::optional<Divergence> divergence_;  ///< of the node's shard; none: it has no replica
  std::optional<GroupId>
      blocked_;  ///< a group that is applied before any other, once the replica has what it lacks
  std::optional<ShardReplica> replica_;
  SentGroups sent_;
};

}  // namespace hips::ps
