#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>

#include <hips/status.hpp>

#include "lib/ps/intents.hpp"
#include "lib/ps/mail.hpp"
#include "lib/ps/rank_places.hpp"
#include "lib/ps/replica_store.hpp"
#include "lib/ps/replicas.hpp"
#include "lib/ps/row_store.hpp"
#include "lib/ps/row_type.hpp"

namespace hips::ps {

/// Serves the rows of one node: answers requests for rows that are here, forwards those for keys whose home is here, and
/// moves rows from node to node.
///
/// A row is in one place at any time, its owner's store or a transfer. The home of a key orders all that concerns it: it sends
/// requests and then a hand-over to the owner in one order, over a connection that keeps the order. So a forwarded request
/// always finds a node that owns the row or is going to; there it waits.
///
/// Threads  one at a time. The store is also used by the other ranks of the node.
/// Errors   on_mail(): kMismatch, kInternal: the mail cannot be. kOutOfMemory: the store is full. The table has then failed.
/// Source   the relocation protocol of Lapse (VLDB 2020), with the home as the only one who orders.
class Service {
 public:
  struct Options {
    std::int32_t node = 0;
    RankPlaces places;
    RowType type;
    std::vector<std::byte> first_row;  ///< of a key that nobody has changed; empty: zeros
  };
  /// `replicas`: of the node; null: rows are not replicated.
  Service(Options options, RowStore& store, Mail& mail, ReplicaStore* replicas = nullptr);

  Status on_mail(const Batch& batch);

  // What it knew, once it serves no more.

  /// Calls use(key, owner) with each key whose home is here and whose owner is another node.
  template <typename Use>
  void for_each_moved(Use&& use) const {
    for (const auto& [key, owner] : owner_) use(key, owner);
  }
  /// Calls use(key) with each key that is on its way here.
  template <typename Use>
  void for_each_coming(Use&& use) const {
    for (const auto& [key, tenures] : coming_)
      if (!recalls_.contains(key)) use(key);
  }
  /// Calls use(key, row) with each row of this node that is not in its store: it is out of use until replicas are given up, or has
  /// found no room.
  template <typename Use>
  void for_each_recalled(Use&& use) const {
    for (const auto& [key, recall] : recalls_) use(key, recall.row.data());
  }

  /// Keys whose home is here and whose owner is another node.
  [[nodiscard]] std::size_t num_moved() const { return owner_.size(); }
  /// Keys that are on their way here.
  [[nodiscard]] std::size_t num_coming() const { return coming_.size(); }
  /// Replicas of this node, those included whose end is not known to their owners; and rows of this node that have replicas.
  [[nodiscard]] std::size_t num_replicas() const {
    return replicated_.size() + recalls_.size() +
           (replicas_ ? replicas_->num_replicas() + replicas_->num_ending() : 0);
  }
  /// Keys whose home is here, and for which a node has intents.
  [[nodiscard]] std::size_t num_wanted() const { return wanting_.size(); }

 private:
  /// A pull, push or set that waits for its row.
  struct Waiting {
    BatchHead head;
    std::uint32_t position = 0;
    std::vector<std::byte> row;
  };
  /// A rank's localize that waits for a row.
  struct Localize {
    Rank requester = -1;
    std::uint32_t request = 0, position = 0;
  };
  /// A time during which this node owns a row that has not arrived yet.
  struct Tenure {
    std::vector<Waiting> requests;
    boost::container::small_vector<Localize, 1> localizes;
    std::vector<std::int32_t> replicates;    ///< nodes that get replicas
    std::optional<std::int32_t> next_owner;  ///< it ends with a transfer to this node
  };
  using Tenures = boost::container::small_vector<Tenure, 1>;  ///< the front one is waited for
  /// What goes to another node's service.
  struct Forward {
    std::int32_t node = 0;
    std::size_t record = 0;
    bool by_home = false;  ///< of the key
    [[nodiscard]] auto group() const { return std::pair(node, by_home); }
  };
  /// A node with a replica of a row that is here.
  struct Holder {
    std::int32_t node = 0;
    RowStore::Version sent;  ///< of the last row in an answer to it
  };
  using Holders = std::vector<Holder>;
  /// A row that its owner has taken out of use, until nodes have given their replicas up.
  struct Recall {
    std::vector<std::byte> row;
    std::vector<std::int32_t> nodes;
  };
  class Answers;

  void on_access(const Batch& batch);
  void on_localize(const Batch& batch);
  void on_told(const Batch& batch);
  void told(MailKind kind, std::int32_t node, std::span<const Key> keys);
  void on_hand_over(const Batch& batch);
  void on_transfer(const Batch& batch);
  void on_clock(const Batch& batch);
  void on_intent(const Batch& batch);
  void on_alone(const Batch& batch);
  void act_on_intents();
  void pass_on(Key key, const Waiting& request);
  void ask_owners_to_replicate(std::int32_t node, std::span<const Key> keys);
  void replicate(std::span<const Key> keys, std::int32_t node);
  void recall(Key key);
  void access_replicated(const Batch& batch, std::span<const std::size_t> records);
  void arrive(Key key, const std::byte* row, Answers& answers);
  void on_recalled(std::span<const Key> keys);
  void on_flush(const Batch& batch);
  void on_drop(const Batch& batch);
  void on_replica(const Batch& batch);
  void on_dropped(const Batch& batch);
  void on_mail_of_replicas(const Batch& batch);
  void finish_moves();
  void when_answered(MailKind kind, std::uint64_t clock);
  void tell_answered_clocks();
  void on_answered(MailKind kind, std::uint64_t clock);
  void compare_clocks();
  template <typename Of>  // Holders, const or not
  [[nodiscard]] static auto* holder(Of& holders, std::int32_t node) {
    const auto at =
        std::find_if(holders.begin(), holders.end(), [&](const Holder& one) { return one.node == node; });
    return at == holders.end() ? nullptr : &*at;
  }
  [[nodiscard]] bool needs_relay(const BatchHead& head, Key key) const {
    if (replicated_.empty()) return false;
    const auto known = replicated_.find(key);
    if (known == replicated_.end()) return false;
    return head.kind == MailKind::kSet || holder(known->second, node_of(head.requester)) != nullptr;
  }
  void want(std::span<const Key> keys);
  void tell_homes(MailKind kind, std::span<const Key> keys);
  void tell_node(MailKind kind, std::int32_t node, std::span<const Key> keys);
  void wanted_by(std::int32_t node, std::span<const Key> keys, bool can_move);
  void unwanted_by(std::int32_t node, std::span<const Key> keys);
  void stay(std::span<const Key> keys);
  [[nodiscard]] static std::vector<Key> keys_of(const Batch& batch);
  /// Looks for the rows of n keys, key(0), ..., key(n - 1), all at the same time: their places are in places_.
  template <typename KeyOf>
  void find_places(std::size_t n, KeyOf&& key) {
    places_.resize(n);
    for (std::size_t i = 0; i < n; ++i) store_.expect(key(i), places_[i]);
    for (std::size_t i = 0; i < n; ++i) store_.look(key(i), places_[i]);
  }
  [[nodiscard]] std::int32_t node_of(Rank rank) const {
    return options_.places.node_of[static_cast<std::size_t>(rank)];
  }
  /// Of a key whose home is here.
  [[nodiscard]] std::int32_t owner_of(Key key) const {
    const auto known = owner_.find(key);
    return known == owner_.end() ? options_.node : known->second;
  }
  /// Whether a row that is not here is on its way here, to stay.
  [[nodiscard]] bool is_coming(Key key) const {
    const auto coming = coming_.find(key);
    return coming != coming_.end() && !coming->second.back().next_owner;
  }
  void tell_clock(Rank to, MailKind kind, std::uint64_t clock);
  /// Does a push or set on a row.
  void change(MailKind kind, std::byte* row, const std::byte* given) const;
  void move(std::span<const Key> keys, std::int32_t to);
  void hand_over(Key key, std::int32_t to, BatchWriter& transfers);
  void broke(Status status);
  [[nodiscard]] Rank service(std::int32_t node) const {
    return options_.places.service_of[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] bool is_home(Key key) const { return options_.places.home_of(key) == options_.node; }
  /// Calls write(node, begin, end) for each range of forwards_ of one group().
  template <typename Write>
  void for_each_node(Write&& write);
  /// Whether the home of a row that is not here is, and nobody has changed or moved the row.
  [[nodiscard]] bool is_unused(Key key) const { return is_home(key) && !owner_.contains(key); }
  /// Makes such a row at its first use.
  bool make_first_row(Key key);

  Options options_;
  RowStore& store_;
  Mail& mail_;
  std::size_t row_bytes_;
  std::unordered_map<Key, std::int32_t> owner_;  ///< of keys whose home is here; absent: this node
  std::unordered_map<Key, Tenures> coming_;
  Intents intents_;  ///< of ranks of this node
  std::unordered_map<Key, std::vector<std::int32_t>>
      wanting_;                                  ///< nodes with intents, of keys whose home is here
  std::unique_ptr<Replicas> replicas_;           ///< of this node
  std::unordered_map<Key, Holders> replicated_;  ///< of rows that are here
  std::unordered_map<Key, Recall> recalls_;
  std::vector<std::pair<std::int32_t, Key>> to_recall_, to_replicate_, to_refuse_;  ///< for finish_moves()
  std::vector<Key> lost_;                                                           ///< that ranks here want
  std::uint64_t least_clock_ = 0;           ///< that all ranks of this node have ended
  std::vector<std::uint64_t> clocks_;       ///< that ranks of this node have ended, by rank
  std::vector<std::uint64_t> node_clocks_;  ///< the least of them, by node
  std::uint64_t all_clocks_ = 0;            ///< the least of those
  std::vector<std::byte> row_;              ///< work space
  std::vector<Forward> forwards_;
  std::vector<RowStore::Place> places_;
  std::vector<Key> keys_;
  Status failure_;
};

}  // namespace hips::ps
