#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/comm/calls/call_record.hpp"
#include "lib/comm/setup/process_info.hpp"

namespace hips::comm {

/// A peer's answer to a query about its calls.
struct CallAnswer {
  CallEntry asked;  ///< its call with the queried index; kNone until it starts that call
  CallEntry last;   ///< its most recent call
};

/// Receives the events of one communicator from the control plane and answers its queries.
///
/// Threads  on_*: the control thread, with no lock held. The others: any thread inside Control; they must not
///          call Control.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
  /// The communicator has failed, with the same status on every rank. Called once.
  virtual void on_failed(const Status& status) = 0;
  /// `rank` has left the communicator and sends nothing more.
  virtual void on_left(Rank rank) = 0;
  /// `from` answered query().
  virtual void on_answer(Rank from, const CallAnswer& answer) = 0;
  /// Answers the query() of a peer.
  [[nodiscard]] virtual CallAnswer answer(std::uint64_t call_index) const = 0;
  /// Describes what this rank is waiting for from `rank`, for an error message; "" if nothing or unknown.
  [[nodiscard]] virtual std::string activity(Rank rank) const = 0;
  /// True while this rank is in a call, so that activity() may soon return more.
  [[nodiscard]] virtual bool in_call() const = 0;
};

/// The control plane of a process. It detects dead processes, notifies all members, and answers queries while
/// the rank itself is busy.
///
///        rank 0 (hub)          The processes of a group keep one TCP link each to that of its lowest rank that
///        /   |    \            has not left. All groups of two processes share one link. Communicators derived
///    rank 1 rank 2 rank 3      from others belong to the group of the first: to make and to free one costs no message.
///
/// - Dead process: its link closes without a leave message, or its pidfd fires (same node).
/// - Dead node: the kernel's keepalive breaks the link after Options::dead_after_ns.
/// - Late process: a stopped or busy process keeps its links and counts as alive.
/// - Failure: members report failures of a communicator to the hub. The hub broadcasts the first one, which becomes
///   the failure of all its members, also of those that make it later. A dead process fails the communicators that
///   contain it, and no others. If the hub dies, each member detects it on its own and uses the same message.
/// - Leaving: a process leaves the group with the last communicator in it. It notifies the hub, which notifies the
///   others. A leaving hub notifies all members and waits for their acknowledgements; the next lowest rank becomes
///   the hub. The control thread does that wait. At process exit it lasts at most one second.
/// - What is left of a failed communicator gathers through the hub, too: a new hub hears of the last result from its members
///   before it decides the next, since it waits for the parts of all.
/// - Destroying a communicator of a group with others tells nobody. Who asks for a call of it learns that.
///
/// Cost     one thread that sleeps in ppoll; no overhead on the data path.
/// Threads  all calls from any thread; only gather() and shutdown() wait for peers.
class Control {
 public:
  struct Options {
    ProcessInfo self;
    std::string token;                           ///< the job token
    std::int64_t dead_after_ns = 4'000'000'000;  ///< a node that does not respond for this long is dead
  };
  enum class Reach : std::uint8_t { kNode, kNetwork };

  /// Describes the first communicator of a group to join().
  struct GroupConfig {
    std::uint64_t id = 0;
    Rank rank = -1;
    std::vector<ProcessInfo> members;  ///< by rank
    std::weak_ptr<GroupListener> listener;
  };

  /// Describes a further communicator of a group to derive().
  struct DerivedConfig {
    std::uint64_t from = 0;  ///< a communicator of the group, which has not left
    bool depends = true;     ///< a rank on which `from` has failed does not make it
    std::uint64_t id = 0;
    Rank rank = -1;
    std::vector<Rank> members;  ///< by rank, their ranks in `from`
    std::weak_ptr<GroupListener> listener;
  };

  static Result<std::unique_ptr<Control>> create(Options options);
  ~Control();  ///< calls shutdown() if that has not happened yet
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// Returns the address at which peers on this node (kNode) or on any node (kNetwork) reach this process.
  /// The first call opens the listener.
  Result<ControlAddress> listen(Reach reach);

  // Communicators are named by their ids.

  /// Starts monitoring a communicator, with a group of its own.
  void join(GroupConfig config);
  /// Starts monitoring a communicator of some processes of a group. Local.
  void derive(DerivedConfig config);
  /// Leaves a communicator in order. The listener receives no further events.
  void leave(std::uint64_t id);
  /// Fails the communicator on all ranks, unless it has failed already.
  void report(std::uint64_t id, const Status& status);
  /// A transport lost `rank`, which may be dead or may have left. Reports `status` after two seconds, unless
  /// the rank turns out to have left or the communicator fails for another reason first.
  void suspect(std::uint64_t id, Rank rank, const Status& status);
  /// Queries `rank` for its call with that index. on_answer() follows if its process is alive.
  void query(std::uint64_t id, Rank rank, std::uint64_t call_index);

  /// Gathers a part of each process of a communicator that has neither died nor left, by rank; nothing stands for the others. All
  /// that are left call it, also after a failure, with `round` = 1, 2, ... in turn, and all get the same. Blocks until all that are
  /// left have called it, have destroyed the communicator or have given up; calls `tick` meanwhile, about every millisecond.
  ///
  /// Cost     two messages of the hub and each process, which grow with what is gathered.
  /// Errors   kTimeout, now and later: this process has given up, and is left out. kPeerLost: the others take it for dead.
  ///          kInternal: it has left the communicator. kOutOfMemory is thrown; call again with the same arguments.
  Result<std::vector<std::optional<std::vector<std::byte>>>> gather(std::uint64_t id, std::uint64_t round,
                                                                    std::span<const std::byte> mine,
                                                                    std::int64_t timeout_ns,
                                                                    const std::function<void()>& tick);

  /// Leaves all communicators, waits up to one second for the acknowledgements, and ends the thread.
  void shutdown();

  /// Called around fork(). before_fork() locks the state; the other two unlock it. In the child all
  /// descriptors are closed, so that the child neither keeps links open nor sends on them, and the object
  /// stays inert.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  class Impl;
  explicit Control(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hips::comm
