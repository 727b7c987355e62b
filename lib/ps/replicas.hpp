#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hips/status.hpp>

#include "lib/ps/mail.hpp"
#include "lib/ps/replica_store.hpp"

namespace hips::ps {

/// A service's side of the replicas of its node: sends deltas to the owners, and keeps the values near theirs.
///
/// A delta is missing from the owner's row until the owner has answered it. All between an owner and this node is in order: so a
/// value from the owner lacks exactly the deltas that it has not answered before, and a replica is that value, the missing deltas and
/// what has been pushed since. When a replica is removed its missing deltas stay known until they are answered: answers of the owner
/// to ranks of this node come by way of here, and are completed by them.
///
/// Cost     nothing for keys without a replica; for those two rows, and one for each delta that is on its way.
/// Threads  one at a time.
/// Errors   kPeerLost: a latch is lost. kMismatch: an answer to nothing.
class Replicas {
 public:
  Replicas(Rank service, ReplicaStore& store, Mail& mail, std::size_t row_bytes)
      : service_(service), store_(store), mail_(mail), row_bytes_(row_bytes), work_(row_bytes) {}

  [[nodiscard]] bool has(Key key) const { return replicas_.contains(key); }
  /// Whether a replica of the key has been given up, and the owner has not confirmed it.
  [[nodiscard]] bool ends(Key key) const;
  [[nodiscard]] std::size_t num_replicas() const { return replicas_.size(); }
  [[nodiscard]] std::size_t num_ending() const { return ending_.size(); }

  /// A row of its owner. Given up where there is no room, or it is too old to be read here: with the next drop().
  Status add(Rank owner, Key key, const std::byte* value, bool is_old);
  /// Gives replicas up. Keys without one are left out.
  Status drop(std::span<const Key> keys);
  /// The owner takes its rows back.
  Status on_recall(const Batch& batch);
  /// kValue and kKnown.
  Status on_value(const Batch& batch);
  /// The owner has no replicas here any more. Fills `own`: keys given up by this node, and `recalled`.
  Status on_dropped(const Batch& batch, std::vector<Key>& own, std::vector<Key>& recalled);
  /// Passes answers of an owner on to a rank of this node.
  Status relay(const Batch& batch);

  /// Sends deltas to the owners; `all`: asks for the values of all replicas, too, where the owners have newer ones.
  Status flush(bool all);

  /// What happens when everything sent so far has been answered.
  struct Event {
    MailKind kind;
    std::uint64_t clock;
  };
  void when_answered(Event event);
  /// Takes the first event whose time has come.
  bool take_event(Event& event);

 private:
  struct Replica {
    Rank owner = -1;
    std::vector<std::vector<std::byte>>
        missing;                        ///< deltas without an answer; empty: a request for the value
    std::vector<std::uint64_t> groups;  ///< of those
  };
  struct Ending {
    Replica replica;
    bool recalled = false, full = false;
  };
  struct Group {
    std::size_t num_unanswered = 0;
    bool closed = false;
    Event event{};
  };
  struct Outgoing {
    Rank owner = -1;
    Key key = 0;
    std::vector<std::byte> delta{};
    bool wants_value = false;
  };
  Status give_up(Key key, bool recalled);
  void sent(Replica& replica, const std::vector<std::byte>& delta);
  void send();
  Status answered(Replica& replica);
  [[nodiscard]] Ending* ending(Rank owner, Key key);

  Rank service_;
  ReplicaStore& store_;
  Mail& mail_;
  std::size_t row_bytes_;
  std::unordered_map<Key, Replica> replicas_;
  std::map<std::pair<Key, Rank>, Ending> ending_;  ///< by owner
  std::deque<Group> groups_{1};                    ///< the last one is open
  std::uint64_t first_group_ = 0;
  std::vector<Outgoing> flushes_, refreshes_, drops_;
  std::vector<std::byte> work_, delta_;
};

}  // namespace hips::ps
