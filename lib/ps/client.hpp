#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hips/status.hpp>

#include "lib/ps/mail.hpp"
#include "lib/ps/replica_store.hpp"
#include "lib/ps/request_routes.hpp"
#include "lib/ps/row_store.hpp"
#include "lib/ps/row_type.hpp"
#include "lib/ps/service.hpp"

namespace hips::ps {

/// A call of a rank, while answers are missing.
struct TableCall {
  MailKind kind = MailKind::kPull;
  std::byte* out = nullptr;                                    ///< kPull: row i goes to out + i * row bytes
  std::uint64_t num_keys = 0;                                  ///< of the call
  std::uint64_t num_missing = 0;                               ///< answers
  boost::container::small_vector<std::uint64_t, 2> missing{};  ///< a bit for each position
  std::uint32_t number = 0;
  std::atomic<bool> done{true};
};

/// A rank's side of a table: uses rows that its node has, and asks other nodes for the rest.
///
/// A request goes to the node that answered the last one on its key, else to the home. A node that does not own the key any more
/// passes it on to the home.
///
/// Calls of a rank on one key take place in the order of their start: while one is outstanding, a later one follows it by way
/// of the same node, even if the row has come to this one meanwhile. That node passed the first one on before it asked for the row
/// itself, if it did, so the home has had that first.
///
/// Threads  pull(), push(), set() and look() from any; the rest one at a time.
class Client {
 public:
  /// `replicas`: of the node; null: it can have none.
  Client(Rank rank, RankPlaces places, RowType type, RowStore& store, Mail& mail,
         const ReplicaStore* replicas = nullptr);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The row of a key is used if this node has it, and no call of this rank on it may be outstanding.

  [[gnu::always_inline]] Found pull(Key key, const RowStore::Place& place, std::byte* out) const {
    if (routes_.may_be_outstanding(place.hash())) return Found::kAbsent;
    const Found found = store_.copy(key, place, out, row_bytes_);
    return found != Found::kAbsent || replicas_ == nullptr ? found : replicas_->read(key, out);
  }
  [[gnu::always_inline]] Found push(Key key, const RowStore::Place& place, const std::byte* given) const {
    if (routes_.may_be_outstanding(place.hash())) return Found::kAbsent;
    const Found found = store_.with(key, place, [&](std::byte* row) { type_.apply(row, given); });
    return found != Found::kAbsent || replicas_ == nullptr ? found : replicas_->push(key, given);
  }
  Found set(Key key, const RowStore::Place& place, const std::byte* given) const;
  /// Whether the row is here.
  Found look(Key key, const RowStore::Place& place) const;

  /// Asks for keys[p], for p in `positions`. `call` has kind, out and num_keys, and lives until it is done or this object
  /// ends. `given`: rows of all keys, for kPush and kSet.
  void ask(TableCall& call, std::span<const Key> keys, std::span<const std::uint32_t> positions,
           const std::byte* given);
  /// Says that this rank is going to use the keys while its clock is in [start, end).
  void tell_intent(std::span<const Key> keys, std::uint64_t start, std::uint64_t end);
  /// Says that this rank has ended so many clocks.
  void tell_clock(std::uint64_t clock);
  /// Clocks that all ranks have ended, as far as this one knows.
  [[nodiscard]] std::uint64_t all_clocks() const { return all_clocks_.load(std::memory_order_acquire); }
  /// Errors   kMismatch: an answer to nothing.
  Status on_mail(Rank from, const Batch& batch);
  [[nodiscard]] std::size_t row_bytes() const { return row_bytes_; }
  [[nodiscard]] std::uint64_t num_outstanding() const { return routes_.num_outstanding(); }
  /// Rows that this rank has asked for by localize, which are in none of the former.
  [[nodiscard]] std::uint64_t num_moving() const { return num_moving_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] Rank begin_request(Key key);
  void end_request(Key key, Rank from);
  [[nodiscard]] Rank own_service() const { return places_.service_at(rank_); }

  Rank rank_;
  RankPlaces places_;
  RowType type_;
  std::size_t row_bytes_;
  RowStore& store_;
  Mail& mail_;
  const ReplicaStore* replicas_;
  std::unordered_map<std::uint32_t, TableCall*> calls_;
  std::uint32_t last_number_ = 0;
  RequestRoutes routes_;
  std::uint64_t clock_ = 0;  ///< that the service has been told
  std::atomic<std::uint64_t> num_moving_{0};
  std::atomic<std::uint64_t> all_clocks_{0};
  std::vector<std::pair<Rank, std::uint32_t>> order_;  ///< work space: service, position
};

}  // namespace hips::ps
