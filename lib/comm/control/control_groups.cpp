#include <algorithm>
#include <cerrno>
#include <new>
#include <numeric>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/control/control_frames.hpp"
#include "lib/comm/control/control_impl.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

/// How many departed groups are remembered, so that late joins get an answer.
constexpr std::size_t kMostDeparted = 4096;
/// How long a hub waits for members to join before it connects to them.
constexpr std::int64_t kRejoinWaitNs = 2'000'000'000;

ByteWriter death_frame(std::uint64_t group, Rank rank, const std::string& cause) {
  ByteWriter writer = rank_frame(ControlFrame::kDied, group, rank);
  writer.put_text(cause);
  return writer;
}

}  // namespace

Control::Impl::Group* Control::Impl::find(std::uint64_t id) {
  const auto found = groups_.find(id);
  return found == groups_.end() || found->second.done ? nullptr : &found->second;
}

void Control::Impl::join(GroupConfig config) {
  const std::lock_guard lock(mutex_);
  if (forked_ || stop_) return;
  const std::uint64_t id = config.id;
  Group made;
  made.id = id;
  made.rank = config.rank;
  made.presence.assign(config.members.size(), Presence::kPresent);
  made.members = std::move(config.members);
  Group& group = groups_[id] = std::move(made);
  try {
    take_in(group, std::move(config.listener));
  } catch (const std::bad_alloc&) {
    // A group that is known by half would take its members' messages for those of others.
    group_of_.erase(id);
    groups_.erase(id);
    throw;
  }
}

void Control::Impl::take_in(Group& group, std::weak_ptr<GroupListener> listener) {
  const std::uint64_t id = group.id;
  std::vector<Rank> all(group.members.size());
  std::iota(all.begin(), all.end(), 0);
  add(group,
      {.id = id, .rank = group.rank, .from = 0, .ranks = std::move(all), .listener = std::move(listener)});
  seek_hub(group);
  std::vector<EarlyJoin> mine;
  std::erase_if(early_joins_, [&](const EarlyJoin& early) {
    if (early.group == id) mine.push_back(early);
    return early.group == id;
  });
  for (const EarlyJoin& early : mine) take_join(*early.link, id, early.rank, early.left);
  refresh_watches();
}

/// The last communicator of the group has gone.
void Control::Impl::leave(Group& group) {
  if (group.leaving) return;
  group.leaving = true;
  try {
    say_goodbye(group);
  } catch (const std::bad_alloc&) {
    group.leaving = false;  // expire() tries again
    throw;
  }
  refresh_watches();
}

void Control::Impl::say_goodbye(Group& group) {
  if (group.is_hub()) {
    // Report deaths before the next rank becomes the hub.
    confirm_deaths(group, std::exchange(group.deaths, {}));
    tell_members(group, ranks_frame(ControlFrame::kLeave, group.id, group.rank, group.left()), -1);
    check_leaving_hub(group);
  } else if (group.hub_link != nullptr && !group.hub_link->broken) {
    send(*group.hub_link, ranks_frame(ControlFrame::kLeave, group.id, group.rank, group.left()));
  } else if (!group.deaths.contains(group.hub) &&
             (group.hub_link == nullptr || group.hub_link->uid == ProcessUid())) {
    group.done = true;  // it was never reached; if it has died, the next hub hears of this (confirm_death())
  }
}

void Control::Impl::take_frame(Link& link, std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto type = reader.get<ControlFrame>();
  if (!link.greeted) {
    if (type == ControlFrame::kHello)
      take_hello(link, reader);
    else
      break_link(link, "is lost: its first frame was not a hello");
    return;
  }
  const auto id = reader.get<std::uint64_t>();
  if (const Group* group = find(id); group != nullptr && !group->has(link.uid)) {
    break_link(link, "is lost: it sent a message about a communicator that it does not belong to");
    return;
  }
  switch (type) {
    case ControlFrame::kJoin: {
      const auto rank = reader.get<Rank>();
      const std::vector<Rank> left = get_ranks(reader);
      if (reader.ok()) take_join(link, id, rank, left);
      break;
    }
    case ControlFrame::kLeave: {
      const auto rank = reader.get<Rank>();
      const std::vector<Rank> left = get_ranks(reader);
      if (reader.ok()) take_leave(link, id, rank, left);
      break;
    }
    case ControlFrame::kGone:
      take_gone(link, id);
      break;
    case ControlFrame::kLeaveAck:
      if (const auto rank = reader.get<Rank>(); reader.ok()) take_leave_ack(id, rank);
      break;
    case ControlFrame::kLeft: {
      const auto rank = reader.get<Rank>();
      Group* group = find(id);
      if (reader.ok() && group != nullptr && group->has(rank)) mark_left(*group, rank);
      break;
    }
    case ControlFrame::kDied: {
      const auto rank = reader.get<Rank>();
      const std::string cause = reader.get_text();
      Group* group = find(id);
      if (reader.ok() && group != nullptr && group->has(rank)) take_death(*group, rank, cause);
      break;
    }
    case ControlFrame::kReport:
    case ControlFrame::kFailed: {
      const auto communicator = reader.get<std::uint64_t>();
      const Status status = reader.get_status();
      Group* group = find(id);
      if (!reader.ok() || group == nullptr) break;
      if (type == ControlFrame::kReport)
        take_report(*group, communicator, status);
      else
        fail_here(*group, communicator, status);
      break;
    }
    case ControlFrame::kQuery: {
      const auto communicator = reader.get<std::uint64_t>();
      const auto from = reader.get<std::uint64_t>();
      const auto asker = reader.get<Rank>();
      const auto target = reader.get<Rank>();
      const auto call_index = reader.get<std::uint64_t>();
      Group* group = find(id);
      if (reader.ok() && group != nullptr && group->has(asker) && group->has(target))
        take_query(link, *group, {communicator, from}, asker, target, call_index);
      break;
    }
    case ControlFrame::kReply: {
      const auto communicator = reader.get<std::uint64_t>();
      const auto asker = reader.get<Rank>();
      const auto target = reader.get<Rank>();
      CallAnswer answer;
      answer.asked = get_call(reader);
      answer.last = get_call(reader);
      Group* group = find(id);
      if (reader.ok() && group != nullptr && group->has(asker) && group->has(target))
        take_reply(*group, communicator, asker, target, answer);
      break;
    }
    case ControlFrame::kGather:
    case ControlFrame::kGathered:
      take_gather_frame(link, type, id, reader);
      break;
    default:
      reader.get_bytes();
      break;
  }
  if (!reader.ok()) break_link(link, "is lost: it sent an invalid HiPS control frame");
}

/// A member joins us as its hub. We may not know yet that we are the hub, or may have left already.
void Control::Impl::take_join(Link& link, std::uint64_t id, Rank rank, const std::vector<Rank>& left) {
  Group* group = find(id);
  if (group == nullptr) {
    if (std::find(departed_.begin(), departed_.end(), id) != departed_.end())
      send(link, frame(ControlFrame::kGone, id));
    else
      early_joins_.push_back({&link, id, rank, left});
    return;
  }
  if (!group->has(rank) || group->member(rank).uid != link.uid) {
    break_link(link, "it joined a communicator with a rank that is not its own");
    return;
  }
  // After we sent our leave message to another hub, we will not become the hub.
  if (group->leaving && !group->is_hub()) {
    send(link, frame(ControlFrame::kGone, id));
    return;
  }
  group->links[rank] = &link;
  if (group->of(rank) == Presence::kDead) send(link, death_frame(id, rank, group->causes[rank]));
  for (const Rank r : left) learn_left(*group, r);
  // It may have missed these while it had no hub.
  for (const Rank r : group->left()) send(link, rank_frame(ControlFrame::kLeft, id, r));
  for (const auto& [communicator, status] : group->failures)
    send(link, status_frame(ControlFrame::kFailed, id, communicator, status));
  for (const auto& [dead, cause] : group->causes) send(link, death_frame(id, dead, cause));
  if (group->leaving) send(link, ranks_frame(ControlFrame::kLeave, id, group->rank, group->left()));
}

void Control::Impl::take_leave(Link& link, std::uint64_t id, Rank rank, const std::vector<Rank>& left) {
  Group* group = find(id);
  if (group != nullptr && (!group->has(rank) || group->member(rank).uid != link.uid)) {
    break_link(link, "it sent a leave message for a rank that is not its own");
    return;
  }
  const bool from_hub = group != nullptr && rank == group->hub;
  // We cannot forward this leave message, and its sender would look dead. Redirect it to the next hub.
  if (group == nullptr || (group->leaving && !group->is_hub() && !from_hub)) {
    send(link, frame(ControlFrame::kGone, id));
    if (group != nullptr) mark_left(*group, rank);
    return;
  }
  for (const Rank r : left) learn_left(*group, r);
  if (from_hub) {
    // If we are leaving too, our leave message reaches this hub before the acknowledgement below.
    if (!group->leaving) mark_left(*group, rank);
  } else {
    // Notify the others first. The sender may exit once it is acknowledged and must not look dead to them.
    learn_left(*group, rank);
  }
  send(link, rank_frame(ControlFrame::kLeaveAck, id, group->rank));
}

/// The process that we took for the hub has left. A leaving hub gets this answer from members that left
/// meanwhile.
void Control::Impl::take_gone(Link& link, std::uint64_t id) {
  Group* group = find(id);
  if (group == nullptr) return;
  for (Rank r = 0; r < group->size(); ++r)
    if (group->member(r).uid == link.uid) mark_left(*group, r);
}

void Control::Impl::take_leave_ack(std::uint64_t id, Rank rank) {
  Group* group = find(id);
  if (group == nullptr || !group->leaving) return;
  if (group->is_hub()) {
    group->leave_acks[rank] = true;
    check_leaving_hub(*group);
  } else if (rank == group->hub) {
    group->done = true;
  }
}

/// A leaving hub is done when every present member has acknowledged. Until then it keeps forwarding messages.
void Control::Impl::check_leaving_hub(Group& group) {
  if (!group.leaving || !group.is_hub()) return;
  for (Rank r = 0; r < group.size(); ++r)
    if (r != group.rank && group.of(r) == Presence::kPresent && !group.leave_acks[r]) return;
  group.done = true;
}

void Control::Impl::learn_left(Group& group, Rank rank) {
  if (!group.has(rank) || group.of(rank) != Presence::kPresent || rank == group.rank) return;
  tell_members(group, rank_frame(ControlFrame::kLeft, group.id, rank), rank);
  mark_left(group, rank);
}

void Control::Impl::mark_left(Group& group, Rank rank) {
  if (group.of(rank) != Presence::kPresent || rank == group.rank) return;
  group.of(rank) = Presence::kLeft;
  group.deaths.erase(rank);
  log::debug(Subsystem::kControl, "rank {} left communicator {:x}", rank, group.id);
  for (auto& [id, member] : group.communicators) {
    const Rank here = member.of(rank);
    if (here < 0) continue;
    member.suspicions.erase(here);
    if (!member.failure) deliver_left(member, here);
  }
  if (rank == group.hub)
    seek_hub(group);
  else
    check_leaving_hub(group);
  decide_all(group);
  refresh_watches();
}

/// The hub is the lowest rank that has neither left nor died.
void Control::Impl::seek_hub(Group& group) {
  Rank hub = 0;
  while (group.of(hub) != Presence::kPresent) ++hub;  // ends at our own rank at the latest
  group.hub = hub;
  group.hub_link = nullptr;
  if (group.is_hub()) {
    group.rejoin_deadline_ns = now_ns() + kRejoinWaitNs;
    const auto reports = std::exchange(group.reports, {});
    for (const auto& [id, report] : reports) take_report(group, id, report.status);
    // Members may have joined before this was known.
    for (const auto& [id, status] : group.failures)
      tell_members(group, status_frame(ControlFrame::kFailed, group.id, id, status), -1);
    for (const auto& [dead, cause] : group.causes)
      tell_members(group, death_frame(group.id, dead, cause), -1);
    if (group.leaving) {
      const ByteWriter leave = ranks_frame(ControlFrame::kLeave, group.id, group.rank, group.left());
      tell_members(group, leave, -1);
      // After a hub's death, some may have left past this rank, which was not the hub yet.
      for (Rank r = 0; r < group.size() && !group.causes.empty(); ++r)
        if (r != group.rank && group.of(r) == Presence::kPresent && !group.links.contains(r))
          send(link_to(group.member(r)), leave);
      check_leaving_hub(group);
    }
    resume_gathers(group);
    return;
  }
  Link& link = link_to(group.member(hub));
  group.hub_link = &link;
  // Send known failures before the join that makes it the hub. It must see them before it reports any of its own.
  for (const auto& [id, status] : group.failures)
    send(link, status_frame(ControlFrame::kReport, group.id, id, status));
  const auto type = group.leaving ? ControlFrame::kLeave : ControlFrame::kJoin;
  send(link, ranks_frame(type, group.id, group.rank, group.left()));
  if (group.leaving) return;
  for (const auto& [id, report] : group.reports)
    send(link, status_frame(ControlFrame::kReport, group.id, id, report.status));
  resume_gathers(group);
}

void Control::Impl::tell_members(Group& group, const ByteWriter& writer, Rank except) {
  for (const auto& [rank, link] : group.links)
    if (rank != except && group.of(rank) == Presence::kPresent) send(*link, writer);
}

void Control::Impl::process_died(const ProcessUid& uid, const std::string& cause) {
  for (auto& [id, group] : groups_) {
    if (group.done) continue;
    for (Rank r = 0; r < group.size(); ++r) {
      if (group.member(r).uid != uid || group.of(r) != Presence::kPresent || r == group.rank) continue;
      // Wait before confirming: a leaving hub may still forward the leave message of that rank, and the
      // waiting thread updates what it misses only a few times per second.
      group.deaths.try_emplace(r, Group::Death{cause, now_ns() + Group::kMissingCheckNs});
      for (auto& [communicator, member] : group.communicators) member.suspicions.erase(member.of(r));
    }
  }
  refresh_watches();
  wake();
}

/// The process of `rank` has ended, and no leave message has arrived.
void Control::Impl::confirm_death(Group& group, Rank rank, const std::string& cause) {
  if (group.of(rank) != Presence::kPresent) return;
  group.of(rank) = Presence::kDead;
  group.causes[rank] = cause;
  group.deaths.erase(rank);  // it may have been noticed again meanwhile
  if (group.is_hub()) {
    fail_members_of(group, rank, [&](Member& member, const Status& status) {
      fail_all(group, member.id, with_activity(group, member, status));
    });
    tell_members(group, death_frame(group.id, rank, cause), -1);
    check_leaving_hub(group);
    decide_all(group);
  } else if (rank == group.hub) {
    // Each member detects this on its own, so the message must not depend on the member.
    fail_members_of(group, rank,
                    [&](Member& member, const Status& status) { fail_here(group, member.id, status); });
    seek_hub(group);
  } else if (!group.leaving) {
    // The hub detects it too, unless it is about to leave.
    fail_members_of(group, rank,
                    [&](Member& member, const Status& status) { report(group, member.id, status); });
  }
  refresh_watches();
}

/// The hub says that a process has ended. It has decided on the communicators that it is a member of.
void Control::Impl::take_death(Group& group, Rank rank, const std::string& cause) {
  if (rank == group.rank) {
    // The network has broken in two, and this process is in the other half.
    group.is_given_up = true;
    changed_.notify_all();
  }
  if (rank == group.rank || group.of(rank) != Presence::kPresent) return;
  group.of(rank) = Presence::kDead;
  group.causes[rank] = cause;
  group.deaths.erase(rank);
  fail_members_of(group, rank,
                  [&](Member& member, const Status& status) { fail_here(group, member.id, status); });
  // It may come from a hub that leaves, and be of the one that would have been the next.
  if (rank == group.hub)
    seek_hub(group);
  else
    check_leaving_hub(group);
  decide_all(group);
  refresh_watches();
}

std::int64_t Control::Impl::next_deadline_ns() const {
  std::int64_t deadline_ns = accept_again_ns_ == 0 ? INT64_MAX : accept_again_ns_;
  for (const auto& [id, group] : groups_) {
    if (group.done) return 0;
    deadline_ns = std::min(deadline_ns, group.rejoin_deadline_ns);
    for (const auto& [rank, death] : group.deaths) deadline_ns = std::min(deadline_ns, death.deadline_ns);
    for (const auto& [communicator, report] : group.reports)
      deadline_ns = std::min(deadline_ns, report.deadline_ns);
    for (const auto& [communicator, gather] : group.gathers)
      if (group.asks_for(gather)) deadline_ns = std::min(deadline_ns, gather.ask_ns);
    for (const auto& [communicator, member] : group.communicators)
      for (const auto& [rank, suspicion] : member.suspicions)
        deadline_ns = std::min(deadline_ns, suspicion.deadline_ns);
  }
  for (const Link& link : links_)
    if (link.dialled && !link.greeted && !link.broken) deadline_ns = std::min(deadline_ns, link.deadline_ns);
  return deadline_ns;
}

void Control::Impl::expire(std::int64_t now_ns) {
  expire_dials(now_ns);
  for (auto& [id, group] : groups_) {
    if (group.communicators.empty() && !group.leaving && !group.done) [[unlikely]]
      leave(group);  // there was no memory for it
    expire_members(group, now_ns);
    ask_for_parts(group, now_ns);
    std::map<Rank, Group::Death> over;
    std::erase_if(group.deaths, [&](const auto& entry) {
      const bool due = now_ns >= entry.second.deadline_ns;
      if (due) over.insert(entry);
      return due;
    });
    if (!over.empty() || !group.held_reports.empty()) confirm_deaths(group, std::move(over));
    if (now_ns < group.rejoin_deadline_ns) continue;
    group.rejoin_deadline_ns = INT64_MAX;
    // Connect to the members that have not joined. That detects those that died before, or while there was no hub.
    for (Rank r = 0; r < group.size(); ++r)
      if (r != group.rank && group.of(r) == Presence::kPresent && !group.links.contains(r))
        link_to(group.member(r));
  }
}

void Control::Impl::erase_done_groups() {
  const auto num_erased = std::erase_if(groups_, [&](const auto& entry) {
    if (entry.second.done) departed_.push_back(entry.first);
    return entry.second.done;
  });
  if (num_erased == 0) return;
  while (departed_.size() > kMostDeparted) departed_.pop_front();
  changed_.notify_all();
  refresh_watches();
}

/// The hub watches the members on its own node; each member watches its hub.
std::set<ProcessUid> Control::Impl::processes_to_watch(std::map<ProcessUid, std::int32_t>& pids) const {
  std::set<ProcessUid> wanted;
  for (const auto& [id, group] : groups_) {
    if (group.done) continue;
    for (Rank r = 0; r < group.size(); ++r) {
      const ProcessInfo& process = group.member(r);
      if (group.presence[static_cast<std::size_t>(r)] != Presence::kPresent) continue;
      if (!group.is_hub() && r != group.hub) continue;
      if (group.deaths.contains(r)) continue;
      if (process.uid == options_.self.uid || process.node_key != options_.self.node_key) continue;
      wanted.insert(process.uid);
      pids[process.uid] = process.pid;
    }
  }
  return wanted;
}

}  // namespace hips::comm
