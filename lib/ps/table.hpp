#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <hips/status.hpp>

#include "lib/comm/communicator.hpp"
#include "lib/ps/client.hpp"
#include "lib/ps/mail_driver.hpp"
#include "lib/ps/replica_store.hpp"
#include "lib/ps/row_store.hpp"
#include "lib/ps/service.hpp"

namespace hips::ps {

struct RowTableOptions {
  std::uint64_t num_keys = 0;  ///< keys are 0 to num_keys - 1
  RowType type;
  std::vector<std::byte> first_row{};   ///< of a key that nobody has changed; empty: zeros
  std::uint64_t rows_per_node = 0;      ///< at most; 0: num_keys
  std::uint64_t staleness = 0;          ///< clocks that a rank may be ahead of another
  std::uint64_t replicas_per_node = 0;  ///< at most, of rows that several nodes have intents for
};

/// Rows that all ranks of a communicator read and change by key. A row is on one node at a time; it can move.
///
/// The lowest rank of each node serves the other nodes while programs compute: see MailDriver.
///
/// Owns     connections of its own to the services of all nodes, and the rows of the node, which end with its last rank.
/// Threads  any number at once.
/// Errors   a failure of the communicator is one of the table. It stays failed.
class RowTable {
 public:
  /// Collective over the communicator, which outlives the table.
  ///
  /// Errors   kInvalidArgument: an option; ranks that disagree: kMismatch. kUnsupported: no transport between two ranks.
  static Result<std::unique_ptr<RowTable>> create(comm::Communicator& members, RowTableOptions options);
  ~RowTable() = default;  ///< no call is outstanding, on any rank: see leave()
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  /// Starts a call; `call` stays empty if it has ended already. `given`: rows, for kPush and kSet; `out`, for kPull: where they
  /// go. Keys may repeat; those of one call are used in any order.
  ///
  /// Errors   kInvalidArgument: a key is out of range; the call did not take place. The failure of the table.
  Status start(std::unique_ptr<TableCall>& call, MailKind kind, std::span<const Key> keys,
               const std::byte* given, std::byte* out);
  // The two parts of start().
  /// Uses the rows that this node has, and waits for nobody. `remote`: the positions of the other keys, which the caller asks for.
  [[gnu::noinline]] Status use(MailKind kind, std::span<const Key> keys, const std::byte* given,
                               std::byte* out, std::vector<std::uint32_t>& remote);
  Status ask(std::unique_ptr<TableCall>& call, MailKind kind, std::span<const Key> keys,
             const std::byte* given, std::byte* out, std::span<const std::uint32_t> remote);
  /// Makes progress; true if the call has ended or the table has failed.
  bool test(const TableCall& call);
  /// Blocks until the call has ended, and returns how. Frees it.
  Status wait(std::unique_ptr<TableCall> call);
  /// Copies the rows that this node has, and says which they are.
  Status pull_if_local(std::span<const Key> keys, std::byte* out, unsigned char* here);

  /// This rank is going to pull or push the rows while its clock is in [start, end). Blocks for nothing; a hint.
  ///
  /// Errors   kInvalidArgument: a key is out of range, or end is before start. The failure of the table.
  Status intent(std::span<const Key> keys, std::uint64_t start, std::uint64_t end);

  /// Ends a clock of this rank: waits for its outstanding calls, then for ranks that are more than `staleness` clocks behind.
  Status advance_clock();

  /// This object is never destroyed; it has failed.
  void stay() noexcept { driver_.stay(); }

  /// Waits until all ranks have come here: then no rank needs this one any more. Collective.
  Status leave() { return driver_.leave(); }

  [[nodiscard]] const RowTableOptions& options() const { return options_; }
  [[nodiscard]] const RankPlaces& places() const { return places_; }
  [[nodiscard]] Status failure() { return driver_.failure(); }

  // For recover().
  /// MailDriver::end(). Then nobody uses its parts on this rank.
  Status end() { return driver_.end(); }
  /// The same on all ranks, and of no other table.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] comm::Communicator& members() const { return members_; }
  [[nodiscard]] const RowStore& store() const { return *store_; }
  [[nodiscard]] const ReplicaStore* replicas() const { return replicas_.get(); }  ///< null: there are none
  [[nodiscard]] const Service* service() const { return service_.get(); }  ///< null: another rank serves

 private:
  RowTable(comm::Communicator& members, RowTableOptions options);
  Status set_up();
  Status set_up(comm::SetUpExchanges& exchanges);
  Status begin_to_serve(std::unique_ptr<TransportMail> mail, SpinLimits spin);
  // Inlined: most calls end after some tens of nanoseconds, of which calls of functions would be a large part.
  [[gnu::always_inline]] inline bool may_begin(std::span<const Key> keys);
  [[nodiscard]] Status why_not(std::span<const Key> keys);
  template <typename Use>
  [[gnu::always_inline]] inline bool use_local(std::span<const Key> keys, Use&& use);
  [[gnu::always_inline]] inline bool use_local(MailKind kind, std::span<const Key> keys,
                                               const std::byte* given, std::byte* out,
                                               std::vector<std::uint32_t>& absent);
  Status receive(Rank from, std::span<const std::byte> batches);

  comm::Communicator& members_;
  RowTableOptions options_;
  RankPlaces places_;
  std::uint64_t id_ = 0;
  std::unique_ptr<RowStore> store_;
  std::unique_ptr<ReplicaStore> replicas_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Service> service_;                    ///< of the node; null where another rank serves
  std::mutex mutex_;                                    ///< of the next
  std::vector<std::unique_ptr<TableCall>> unanswered_;  ///< that the failure has ended
  std::atomic<std::uint32_t> num_starts_{0};            ///< of about as many calls
  std::uint64_t clock_ = 0;                             ///< clocks that this rank has ended
  MailDriver driver_;                                   ///< uses the above
};

}  // namespace hips::ps
