#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/comm/calls/call_record.hpp"
#include "lib/comm/setup/process_info.hpp"

namespace hips::comm {

/// What a peer said about its calls.
struct CallAnswer {
  CallEntry asked;  ///< its call of the index asked for; kNone while it has not come there
  CallEntry last;
};

/// What a communicator hears from the control plane.
///
/// Threads  on_*: the control thread, with no lock held. The others: any thread that is inside Control, which
///          they must not call back.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
  /// The communicator is broken; the same status on every rank. Called once.
  virtual void on_failed(const Status& status) = 0;
  /// `rank` said goodbye. Nothing more comes from it.
  virtual void on_left(Rank rank) = 0;
  /// `from` answered query().
  virtual void on_answer(Rank from, const CallAnswer& answer) = 0;
  [[nodiscard]] virtual CallAnswer answer(std::uint64_t call_index) const = 0;
  /// What this rank lacks from `rank` right now, for the text of an error; "" when nothing or not known.
  [[nodiscard]] virtual std::string activity(Rank rank) const = 0;
  /// Is this rank in a call, so that activity() may soon know more?
  [[nodiscard]] virtual bool in_call() const = 0;
};

/// The control plane of a process: finds out who is dead, tells everybody, and answers for a busy rank.
///
///        rank 0 (hub)          The members of a communicator keep one TCP link each to the process of its
///        /   |    \            lowest rank that has not left. Links are shared by all communicators of two
///    rank 1 rank 2 rank 3      processes.
///
/// - Death of a process: its link ends without a goodbye, or its pidfd fires (same host). Death of a host:
/// the
///   kernel's keepalive ends the link after Options::dead_after_ns. A stopped or busy process is only late.
/// - A failure is reported to the hub, which makes the first one it learns of everybody's. When the hub
/// itself
///   dies every member finds out alone, with the same words.
/// - A member that leaves tells the hub, which tells the others. A hub that leaves tells all members, waits
///   until each has answered, and the next lowest rank is the hub. The wait happens on the control thread,
///   and for at most a second when the process exits.
///
/// Cost     one thread that sleeps in ppoll; nothing on the way of data.
/// Threads  all calls from any thread; none waits for a peer, but for shutdown().
class Control {
 public:
  struct Options {
    ProcessInfo self;
    std::string token;                           ///< of the job
    std::int64_t dead_after_ns = 4'000'000'000;  ///< a host that answers nothing for so long is dead
  };
  enum class Reach : std::uint8_t { kHost, kNetwork };

  /// What a communicator tells on joining.
  struct GroupConfig {
    std::uint64_t id = 0;
    Rank rank = -1;
    std::vector<ProcessInfo> members;  ///< by rank
    std::weak_ptr<GroupListener> listener;
  };

  static Result<std::unique_ptr<Control>> create(Options options);
  ~Control();  ///< shutdown() unless that was done
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// The address by which peers of this host, or of others, reach this process. Opens the listener when first
  /// asked for.
  Result<ControlAddress> listen(Reach reach);

  /// Takes part in a communicator from now on.
  void join(GroupConfig config);
  /// Says goodbye. The listener hears nothing more of what happens afterwards.
  void leave(std::uint64_t group);
  /// Breaks the communicator for all ranks, unless something else has done so before.
  void report(std::uint64_t group, const Status& status);
  /// A transport lost `rank`, which may have died or have left: reports `status` unless within two seconds
  /// the rank is known to have left, or the communicator fails of another cause.
  void suspect(std::uint64_t group, Rank rank, const Status& status);
  /// Asks `rank` for its call of that index; on_answer() follows as long as its process lives.
  void query(std::uint64_t group, Rank rank, std::uint64_t call_index);

  /// Leaves everything, gives the goodbyes up to a second to be heard, and ends the thread.
  void shutdown();

  /// Around fork(): holds the state still, lets go, and in the child drops every descriptor, so that the
  /// child neither keeps links open nor speaks on them. The child's object stays inert.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  class Impl;
  explicit Control(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hips::comm
