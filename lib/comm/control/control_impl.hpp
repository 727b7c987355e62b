#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/wait/clock.hpp"
#include "lib/comm/control/control.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/socket.hpp"

namespace hips::comm {

/// First byte of a frame on a control link.
enum class ControlFrame : std::uint8_t {
  kHello = 1,  ///< magic, wire version, token, uid; the first frame of both sides
  kJoin,       ///< group, rank of the sender, ranks that have left as far as it knows
  kLeave,      ///< group, rank of the sender, ranks that have left as far as it knows
  kLeaveAck,   ///< group, rank of the sender
  kGone,       ///< group: the sender has left it and is not the hub
  kLeft,       ///< hub to member: group, rank that left
  kReport,     ///< member to hub: group, communicator, status
  kFailed,     ///< hub to member: group, communicator, status
  kQuery,  ///< group, communicator, the one it derives from or 0, asker, target, call index; ranks of the group
  kReply,   ///< group, communicator, asker, target, two calls
  kDied,    ///< hub to member: group, rank, what has happened to it
  kGather,  ///< to the hub: group, rank of the sender, communicator, round, the one it derives from or 0, its ranks; the part of the sender
  kGathered,  ///< hub to member, or a member to a new hub: group, communicator, round, the same, its ranks; parts of those that were left
};

/// Completes a sentence that begins with a rank.
inline constexpr const char* kProcessEnded = "died: its process ended without leaving the communicator";

/// The state of a process's control plane. One mutex guards all of it; the thread releases it to sleep and to
/// call listeners. control.cpp implements the thread, control_links.cpp the links, and control_groups.cpp,
/// control_members.cpp and control_gather.cpp the protocol on them.
class Control::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)) {}
  ~Impl();

  Status start();
  Result<ControlAddress> listen(Reach reach);
  void join(GroupConfig config);
  void derive(DerivedConfig config);
  void leave(std::uint64_t id);
  void report(std::uint64_t id, const Status& status);
  void suspect(std::uint64_t id, Rank rank, const Status& status);
  void query(std::uint64_t id, Rank rank, std::uint64_t call_index);
  Result<std::vector<std::optional<Blob>>> gather(std::uint64_t id, std::uint64_t round,
                                                  std::span<const std::byte> mine, std::int64_t timeout_ns,
                                                  const std::function<void()>& tick);
  void shutdown();
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child();

 private:
  /// The largest is a kGathered of the set-up of many ranks, about 1 KiB for each.
  static constexpr std::uint32_t kMaxFrameBytes = 1U << 26;

  struct Link {
    UniqueFd fd;
    FrameReader reader;
    FrameWriter writer;
    ProcessUid uid;
    bool connecting = false;
    bool greeted = false;  ///< the peer's hello has arrived
    bool broken = false;   ///< the thread will drop it
    std::string cause;     ///< why it is broken: "died: ..."
    // The rest is used by a link that we dialled, until it is greeted.
    bool dialled = false;
    std::vector<SocketAddress> candidates;  ///< not tried yet
    SocketAddress trying;
    std::int64_t deadline_ns = INT64_MAX;  ///< for the hello, while candidates remain
    std::vector<std::string> failures;     ///< one per address tried: "10.0.0.1:4711: Connection refused"
    bool all_refused = true;               ///< no process listens at any of those
    std::vector<std::vector<std::byte>> unconfirmed;  ///< frames to resend at the next address
    explicit Link(UniqueFd socket) : fd(std::move(socket)), reader(kMaxFrameBytes) {}
  };

  enum class Presence : std::uint8_t { kPresent, kLeft, kDead };

  /// A communicator of a group.
  struct Member {
    std::uint64_t id = 0;
    Rank rank = -1;
    std::uint64_t from = 0;   ///< the communicator without which it is not made (DerivedConfig::depends)
    std::vector<Rank> ranks;  ///< by rank, the rank in the group
    std::weak_ptr<GroupListener> listener;
    std::optional<Status> failure{};
    bool has_given_up = false;  ///< this process takes no part in gather() any more
    /// A transport has lost a rank. It becomes a report at its deadline unless it is explained first.
    struct Suspicion {
      Status status;
      std::int64_t deadline_ns = INT64_MAX;
    };
    std::map<Rank, Suspicion> suspicions{};

    [[nodiscard]] bool has(Rank r) const { return r >= 0 && r < static_cast<Rank>(ranks.size()); }
    [[nodiscard]] Rank in_group(Rank r) const { return ranks[static_cast<std::size_t>(r)]; }
    /// The rank here of a rank of the group; -1 if it is none.
    [[nodiscard]] Rank of(Rank in_group) const {
      const auto found = std::ranges::find(ranks, in_group);
      return found == ranks.end() ? -1 : static_cast<Rank>(found - ranks.begin());
    }
  };

  /// What the processes of a communicator that are left give each other, round by round. Ranks are those of the group.
  struct Gather {
    std::vector<Rank> ranks;  ///< of the communicator
    std::uint64_t round = 0;  ///< the last that a part was given for
    std::map<Rank, Blob>
        parts;               ///< of `round` until it is decided; the hub has those of all, others their own
    std::uint64_t from = 0;  ///< Member::from
    std::set<Rank> absent;   ///< ranks that take no part any more, though their processes are present
    std::int64_t ask_ns =
        0;  ///< when the hub asks ranks whose parts are missing whether they still have the communicator
    std::uint64_t decided = 0;  ///< the last round that was decided; the same result for all
    std::map<Rank, Blob> result;
  };
  struct RoundOf {
    std::uint64_t round;
    std::uint64_t from;
    std::vector<Rank> ranks;
  };

  struct Group {
    std::uint64_t id = 0;
    Rank rank = -1;
    std::vector<ProcessInfo> members;  ///< by rank
    std::map<std::uint64_t, Member> communicators;
    std::map<std::uint64_t, Gather> gathers;  ///< by communicator; the oldest are forgotten
    std::deque<std::uint64_t> gather_order;
    std::vector<Presence> presence;   ///< by rank
    std::map<Rank, Link*> links;      ///< to the members that joined us as their hub
    std::map<Rank, bool> leave_acks;  ///< of a leaving hub: the members that acknowledged
    Link* hub_link = nullptr;
    Rank hub = 0;
    bool leaving = false;
    bool done = false;
    bool is_given_up = false;  ///< others take this process for dead
    /// The failures that are known, also of communicators that are not here; the oldest are forgotten.
    std::map<std::uint64_t, Status> failures;
    std::deque<std::uint64_t> failure_order;
    /// Our reports that the hub has not confirmed yet, by communicator.
    struct Report {
      Status status;
      std::int64_t deadline_ns = INT64_MAX;
    };
    std::map<std::uint64_t, Report> reports;
    /// The last communicators that this process has destroyed, and the number of the last call of each.
    std::deque<std::pair<std::uint64_t, std::uint64_t>> destroyed;
    /// How long a death is held back, so that the waiting thread can record what it misses from the dead rank.
    static constexpr std::int64_t kMissingCheckNs = 400'000'000;
    /// Processes that have ended; their leave messages may still be in transit.
    struct Death {
      std::string cause;
      std::int64_t deadline_ns = INT64_MAX;
    };
    std::map<Rank, Death> deaths;
    /// By communicator; of ranks that have left. The deaths are confirmed first, since one may be the cause.
    std::vector<std::pair<std::uint64_t, Status>> held_reports;
    std::map<Rank, std::string> causes;           ///< of those that are known to be dead
    std::int64_t rejoin_deadline_ns = INT64_MAX;  ///< when a hub connects to the members that have not joined

    [[nodiscard]] bool is_hub() const { return hub == rank; }
    /// Whether parts are missing that this process may ask for.
    [[nodiscard]] bool asks_for(const Gather& gather) const {
      return is_hub() && !leaving && gather.round > gather.decided;
    }
    [[nodiscard]] Presence& of(Rank r) { return presence[static_cast<std::size_t>(r)]; }
    [[nodiscard]] const ProcessInfo& member(Rank r) const { return members[static_cast<std::size_t>(r)]; }
    [[nodiscard]] Rank size() const { return static_cast<Rank>(members.size()); }
    [[nodiscard]] std::vector<Rank> left() const {
      std::vector<Rank> ranks;
      for (Rank r = 0; r < size(); ++r)
        if (presence[static_cast<std::size_t>(r)] == Presence::kLeft) ranks.push_back(r);
      return ranks;
    }
    [[nodiscard]] bool has(Rank r) const { return r >= 0 && r < size(); }
    [[nodiscard]] bool has_all(const std::vector<Rank>& ranks) const {
      return std::ranges::all_of(ranks, [&](Rank r) { return has(r); });
    }
    [[nodiscard]] bool has(const ProcessUid& uid) const {
      return std::ranges::any_of(members, [&](const ProcessInfo& each) { return each.uid == uid; });
    }
    [[nodiscard]] Member* find(std::uint64_t communicator) {
      const auto found = communicators.find(communicator);
      return found == communicators.end() ? nullptr : &found->second;
    }
  };

  /// A join that came before our own communicator was ready.
  struct EarlyJoin {
    Link* link = nullptr;
    std::uint64_t group = 0;
    Rank rank = -1;
    std::vector<Rank> left;
  };

  // control.cpp: the thread, listeners, watches.
  void run();
  void sleep(std::unique_lock<std::mutex>& lock, bool& slept);
  void wake();
  void deliver(std::unique_lock<std::mutex>& lock);
  void refresh_watches();

  // control_links.cpp: connections.
  void accept_all();
  void service(Link& link);
  void drop_broken_links();
  void send(Link& link, const ByteWriter& frame);
  Link& link_to(const ProcessInfo& process);
  void dial(Link& link);
  void expire_dials(std::int64_t now_ns);
  void note_failed(Link& link, int error);
  void lose(Link& link, int error);
  bool take_hello(Link& link, ByteReader& reader);
  void break_link(Link& link, std::string cause);
  [[nodiscard]] ByteWriter hello(const ProcessUid& to) const;
  [[nodiscard]] std::int64_t now_ns() const { return SystemClock::instance().now_ns(); }

  // control_groups.cpp: membership of processes, frames.
  Group* find(std::uint64_t id);
  void take_frame(Link& link, std::span<const std::byte> bytes);
  void take_join(Link& link, std::uint64_t id, Rank rank, const std::vector<Rank>& left);
  void take_leave(Link& link, std::uint64_t id, Rank rank, const std::vector<Rank>& left);
  void take_gone(Link& link, std::uint64_t id);
  void take_leave_ack(std::uint64_t id, Rank rank);
  void leave(Group& group);
  void say_goodbye(Group& group);
  void learn_left(Group& group, Rank rank);
  void mark_left(Group& group, Rank rank);
  void seek_hub(Group& group);
  void check_leaving_hub(Group& group);
  void process_died(const ProcessUid& uid, const std::string& cause);
  void confirm_death(Group& group, Rank rank, const std::string& cause);
  /// In the order of their detection; then the reports that were held for them.
  void confirm_deaths(Group& group, std::map<Rank, Group::Death> deaths);
  void take_death(Group& group, Rank rank, const std::string& cause);
  void expire(std::int64_t now_ns);
  void erase_done_groups();
  void tell_members(Group& group, const ByteWriter& frame, Rank except);
  [[nodiscard]] std::int64_t next_deadline_ns() const;
  [[nodiscard]] std::set<ProcessUid> processes_to_watch(std::map<ProcessUid, std::int32_t>& pids) const;

  // control_members.cpp: communicators, their failures, queries.
  /// The communicator of this process with that id and its group; null if there is none.
  std::pair<Group*, Member*> find_member(std::uint64_t id);
  /// join(), once the group is known.
  void take_in(Group& group, std::weak_ptr<GroupListener> listener);
  void add(Group& group, Member member);
  /// A communicator that a query is about, and the one that it derives from.
  struct Asked {
    std::uint64_t id, from;
  };
  /// Empty: this rank says nothing.
  std::optional<CallAnswer> answer_to(const Group& group, Asked of, std::uint64_t call_index);
  void take_query(Link& link, Group& group, Asked of, Rank asker, Rank target, std::uint64_t call_index);
  void take_reply(Group& group, std::uint64_t id, Rank asker, Rank target, const CallAnswer& answer);
  void report(Group& group, std::uint64_t id, const Status& status);
  void take_report(Group& group, std::uint64_t id, const Status& status);
  void fail_all(Group& group, std::uint64_t id, const Status& status);
  void fail_here(Group& group, std::uint64_t id, const Status& status);
  void deliver_failure(const Member& member);
  void deliver_left(const Member& member, Rank rank);
  void fail_without_memory();
  /// What members of a communicator get when the process of `rank` has died. Equal on all of them.
  [[nodiscard]] static Status death(const Group& group, const Member& member, Rank rank,
                                    const std::string& cause);
  [[nodiscard]] static Status with_activity(const Group& group, const Member& member, Status status);
  /// Calls `act` with each communicator that contains a dead process.
  void fail_members_of(Group& group, Rank dead, const std::function<void(Member&, const Status&)>& act);
  void expire_members(Group& group, std::int64_t now_ns);

  // control_gather.cpp
  void take_gather_frame(Link& link, ControlFrame type, std::uint64_t id, ByteReader& reader);
  void take_part(Group& group, Link* link, std::uint64_t id, RoundOf of, Rank rank, Blob part);
  void take_decision(Group& group, std::uint64_t id, RoundOf of, std::map<Rank, Blob> result);
  void decide(Group& group, std::uint64_t id);
  void decide_all(Group& group);
  void set_decided(Group& group, std::uint64_t id, std::uint64_t round, std::map<Rank, Blob> result);
  void tell_decision(Group& group, std::uint64_t id);
  void resume_gathers(Group& group);
  void ask_for_parts(Group& group, std::int64_t now_ns);
  void begin_round(Gather& gather, RoundOf of);
  void give_up(std::uint64_t group_id, std::uint64_t id);
  /// That rank has destroyed the communicator, will never make it, or has given up.
  void take_absence(Group& group, std::uint64_t id, Rank rank);
  Gather& gather_of(Group& group, std::uint64_t id);
  [[nodiscard]] static ByteWriter part_frame(const Group& group, std::uint64_t id, const Gather& gather);
  [[nodiscard]] static ByteWriter decision_frame(const Group& group, std::uint64_t id, const Gather& gather);

  Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;  ///< a group was erased, or a round decided
  UniqueFd wake_fd_;
  std::map<Reach, std::pair<UniqueFd, ControlAddress>> listeners_;
  std::list<Link> links_;
  std::map<std::uint64_t, Group> groups_;
  std::unordered_map<std::uint64_t, std::uint64_t> group_of_;  ///< by communicator
  std::vector<EarlyJoin> early_joins_;
  std::deque<std::uint64_t> departed_;      ///< groups that we left recently
  std::map<ProcessUid, UniqueFd> watches_;  ///< pidfds
  std::vector<std::function<void()>> deliveries_;
  bool lost_messages_ = false;        ///< for want of memory; peers have to be told
  std::int64_t accept_again_ns_ = 0;  ///< until then connections stay pending, for want of descriptors
  bool warned_of_descriptors_ = false;
  bool stop_ = false;
  bool forked_ = false;
  std::thread thread_;
};

}  // namespace hips::comm
