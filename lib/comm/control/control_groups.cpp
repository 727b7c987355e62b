#include <algorithm>
#include <cerrno>
#include <new>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/control/control_impl.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

/// How long this rank waits for the hub to confirm a report before it fails on its own.
constexpr std::int64_t kReportWaitNs = 2'000'000'000;
/// How long the leave message of a peer that a transport lost may take.
constexpr std::int64_t kSuspicionNs = 2'000'000'000;
/// The same for a peer that has been silent for seconds. It did not just leave.
constexpr std::int64_t kSilentSuspicionNs = 200'000'000;
/// How many departed groups are remembered, so that late joins get an answer.
constexpr std::size_t kMostDeparted = 4096;
/// How long a death is held back, so that the waiting thread can record what it misses from the dead rank.
constexpr std::int64_t kMissingCheckNs = 400'000'000;
/// How long a new hub waits for members to join before it connects to them.
constexpr std::int64_t kRejoinWaitNs = 2'000'000'000;

ByteWriter frame(ControlFrame type, std::uint64_t group) {
  ByteWriter writer;
  writer.put(type);
  writer.put(group);
  return writer;
}

ByteWriter rank_frame(ControlFrame type, std::uint64_t group, Rank rank) {
  ByteWriter writer = frame(type, group);
  writer.put(rank);
  return writer;
}

ByteWriter ranks_frame(ControlFrame type, std::uint64_t group, Rank rank, const std::vector<Rank>& left) {
  ByteWriter writer = rank_frame(type, group, rank);
  writer.put(static_cast<std::uint32_t>(left.size()));
  for (const Rank r : left) writer.put(r);
  return writer;
}

std::vector<Rank> get_ranks(ByteReader& reader) {
  const auto count = reader.get<std::uint32_t>();
  std::vector<Rank> ranks;
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) ranks.push_back(reader.get<Rank>());
  return ranks;
}

ByteWriter status_frame(ControlFrame type, std::uint64_t group, const Status& status) {
  ByteWriter writer = frame(type, group);
  writer.put_status(status);
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
  Group& group = groups_[id];
  group = Group{};
  group.presence.assign(config.members.size(), Presence::kPresent);
  group.config = std::move(config);
  seek_hub(group);
  std::vector<EarlyJoin> mine;
  std::erase_if(early_joins_, [&](const EarlyJoin& early) {
    if (early.group == id) mine.push_back(early);
    return early.group == id;
  });
  for (const EarlyJoin& early : mine) take_join(*early.link, id, early.rank, early.left);
  refresh_watches();
}

void Control::Impl::leave(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Group* group = find(id);
  if (forked_ || group == nullptr || group->leaving) return;
  group->leaving = true;
  if (group->is_hub()) {
    // Report confirmed deaths before the next rank becomes the hub.
    for (const auto& [rank, suspicion] : group->suspicions)
      if (suspicion.dead) fail_all(*group, suspicion.status);
    tell_members(*group, ranks_frame(ControlFrame::kLeave, id, group->config.rank, group->left()), -1);
    check_leaving_hub(*group);
  } else if (group->hub_link != nullptr && !group->hub_link->broken) {
    send(*group->hub_link, ranks_frame(ControlFrame::kLeave, id, group->config.rank, group->left()));
  } else {
    group->done = true;
  }
  refresh_watches();
}

void Control::Impl::report(std::uint64_t id, const Status& status) {
  const std::lock_guard lock(mutex_);
  Group* group = find(id);
  if (forked_ || group == nullptr || group->leaving) return;
  try {
    report(*group, status);
  } catch (const std::bad_alloc&) {
    lost_messages_ = true;  // the thread reports that in its place
    wake();
  }
}

void Control::Impl::report(Group& group, const Status& status) {
  if (group.failure || group.report) return;
  if (group.is_hub()) {
    fail_all(group, status);
  } else {
    group.report = status;
    group.report_deadline_ns = now_ns() + kReportWaitNs;
    if (group.hub_link != nullptr)
      send(*group.hub_link, status_frame(ControlFrame::kReport, group.config.id, status));
  }
  wake();
}

void Control::Impl::suspect(std::uint64_t id, Rank rank, const Status& status) {
  const std::lock_guard lock(mutex_);
  Group* group = find(id);
  if (forked_ || group == nullptr || !group->has(rank) || group->of(rank) == Presence::kLeft) return;
  const std::int64_t wait_ns = status.sys_errno == ETIMEDOUT ? kSilentSuspicionNs : kSuspicionNs;
  group->suspicions.try_emplace(rank, Group::Suspicion{status, now_ns() + wait_ns});
  wake();
}

void Control::Impl::query(std::uint64_t id, Rank rank, std::uint64_t call_index) {
  const std::lock_guard lock(mutex_);
  Group* group = find(id);
  if (forked_ || group == nullptr || !group->has(rank) || rank == group->config.rank) return;
  ByteWriter writer = frame(ControlFrame::kQuery, id);
  writer.put(group->config.rank);
  writer.put(rank);
  writer.put(call_index);
  if (!group->is_hub()) {
    if (group->hub_link != nullptr) send(*group->hub_link, writer);
  } else if (const auto link = group->links.find(rank); link != group->links.end()) {
    send(*link->second, writer);
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
    case ControlFrame::kReport:
    case ControlFrame::kFailed: {
      const Status status = reader.get_status();
      Group* group = find(id);
      if (!reader.ok() || group == nullptr) break;
      if (type == ControlFrame::kReport)
        fail_all(*group, status);
      else
        fail_here(*group, status);
      break;
    }
    case ControlFrame::kQuery: {
      const auto asker = reader.get<Rank>();
      const auto target = reader.get<Rank>();
      const auto call_index = reader.get<std::uint64_t>();
      if (reader.ok()) take_query(link, id, asker, target, call_index);
      break;
    }
    case ControlFrame::kReply: {
      const auto asker = reader.get<Rank>();
      const auto target = reader.get<Rank>();
      CallAnswer answer;
      answer.asked = get_call(reader);
      answer.last = get_call(reader);
      if (reader.ok()) take_reply(id, asker, target, answer);
      break;
    }
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
  for (const Rank r : left) learn_left(*group, r);
  // It may have missed these while it had no hub.
  for (const Rank r : group->left()) send(link, rank_frame(ControlFrame::kLeft, id, r));
  if (group->failure) send(link, status_frame(ControlFrame::kFailed, id, *group->failure));
  if (group->leaving) send(link, ranks_frame(ControlFrame::kLeave, id, group->config.rank, group->left()));
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
  send(link, rank_frame(ControlFrame::kLeaveAck, id, group->config.rank));
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
    if (r != group.config.rank && group.of(r) == Presence::kPresent && !group.leave_acks[r]) return;
  group.done = true;
}

void Control::Impl::learn_left(Group& group, Rank rank) {
  if (!group.has(rank) || group.of(rank) != Presence::kPresent || rank == group.config.rank) return;
  tell_members(group, rank_frame(ControlFrame::kLeft, group.config.id, rank), rank);
  mark_left(group, rank);
}

void Control::Impl::mark_left(Group& group, Rank rank) {
  if (group.of(rank) != Presence::kPresent || rank == group.config.rank) return;
  group.of(rank) = Presence::kLeft;
  group.suspicions.erase(rank);
  log::debug(Subsystem::kControl, "rank {} left communicator {:x}", rank, group.config.id);
  if (!group.leaving && !group.failure)
    deliveries_.push_back([listener = group.config.listener, rank] {
      if (const auto target = listener.lock()) target->on_left(rank);
    });
  if (rank == group.hub)
    seek_hub(group);
  else
    check_leaving_hub(group);
  refresh_watches();
}

/// The hub is the lowest rank that has not left.
void Control::Impl::seek_hub(Group& group) {
  Rank hub = 0;
  while (group.of(hub) != Presence::kPresent) ++hub;  // ends at our own rank at the latest
  const std::uint64_t id = group.config.id;
  const bool takes_over = hub != 0;
  group.hub = hub;
  group.hub_link = nullptr;
  if (group.is_hub()) {
    if (takes_over) group.rejoin_deadline_ns = now_ns() + kRejoinWaitNs;
    if (group.report && !group.failure) fail_all(group, *group.report);
    if (group.leaving) {
      tell_members(group, ranks_frame(ControlFrame::kLeave, id, group.config.rank, group.left()), -1);
      check_leaving_hub(group);
    }
    return;
  }
  Link& link = link_to(group.member(hub));
  group.hub_link = &link;
  // Send a known failure before the join that makes it the hub. It must see that failure before it reports
  // one of its own.
  if (group.failure) send(link, status_frame(ControlFrame::kReport, id, *group.failure));
  const auto type = group.leaving ? ControlFrame::kLeave : ControlFrame::kJoin;
  send(link, ranks_frame(type, id, group.config.rank, group.left()));
  if (group.report && !group.failure && !group.leaving)
    send(link, status_frame(ControlFrame::kReport, id, *group.report));
}

void Control::Impl::tell_members(Group& group, const ByteWriter& writer, Rank except) {
  for (const auto& [rank, link] : group.links)
    if (rank != except && group.of(rank) == Presence::kPresent) send(*link, writer);
}

/// The hub's decision: the first failure becomes the failure of all members.
void Control::Impl::fail_all(Group& group, const Status& status) {
  if (group.failure) return;
  tell_members(group, status_frame(ControlFrame::kFailed, group.config.id, status), -1);
  fail_here(group, status);
}

void Control::Impl::fail_here(Group& group, const Status& status) {
  if (group.failure) return;
  group.failure = status;
  // `status` may be that of the report itself, and is not read after this.
  group.report.reset();
  group.report_deadline_ns = INT64_MAX;
  log::info(Subsystem::kControl, "communicator {:x} failed: {}", group.config.id, group.failure->message);
  if (!group.leaving) deliver_failure(group);
}

void Control::Impl::deliver_failure(const Group& group) {
  deliveries_.push_back([listener = group.config.listener, status = *group.failure] {
    if (const auto target = listener.lock()) target->on_failed(status);
  });
}

/// The thread ran out of memory while it handled messages, so peers may wait for an answer that never comes, and what it
/// has noted may not have been sent. To hear of it twice harms nobody.
void Control::Impl::fail_without_memory() {
  for (auto& [id, group] : groups_) {
    if (group.done || group.leaving) continue;
    const Rank rank = group.config.rank;
    if (!group.failure && !group.report) {
      report(group, Status::error(Code::kOutOfMemory,
                                  fmt::format("rank {} ({}) has no memory for control messages", rank,
                                              to_string(group.member(rank))),
                                  Scope::kCommunicator));
      continue;
    }
    const Status& known = group.failure ? *group.failure : *group.report;
    if (group.is_hub())
      tell_members(group, status_frame(ControlFrame::kFailed, id, known), -1);
    else if (group.hub_link != nullptr)
      send(*group.hub_link, status_frame(ControlFrame::kReport, id, known));
    if (group.failure) deliver_failure(group);
  }
  lost_messages_ = false;
}

void Control::Impl::process_died(const ProcessUid& uid, const std::string& cause) {
  for (auto& [id, group] : groups_) {
    if (group.done) continue;
    for (Rank r = 0; r < group.size(); ++r) {
      if (group.member(r).uid != uid || group.of(r) != Presence::kPresent || r == group.config.rank) continue;
      Status status =
          Status::error(Code::kPeerLost, fmt::format("rank {} ({}) {}", r, to_string(group.member(r)), cause),
                        Scope::kCommunicator);
      status.rank = r;
      // Wait before confirming: a leaving hub may still forward the leave message of that rank, and the
      // waiting thread updates what it misses only a few times per second.
      const auto known = group.suspicions.find(r);
      if (known == group.suspicions.end() || !known->second.dead)
        group.suspicions.insert_or_assign(r, Group::Suspicion{status, now_ns() + kMissingCheckNs, true});
    }
  }
  refresh_watches();
  wake();
}

/// The process of `rank` has ended, and no leave message has arrived.
void Control::Impl::confirm_death(Group& group, Rank rank, const Status& status) {
  if (group.of(rank) != Presence::kPresent) return;
  group.of(rank) = Presence::kDead;
  if (group.is_hub()) {
    report_death(group, rank, status);
    check_leaving_hub(group);
  } else if (rank == group.hub) {
    // Each member detects this on its own, so the message must not depend on the member.
    fail_here(group, status);
    if (group.leaving) group.done = true;
  } else if (!group.leaving) {
    // The hub detects it too, unless it is about to leave.
    report(group, status);
  }
}

void Control::Impl::report_death(Group& group, Rank rank, Status status) {
  const auto listener = group.config.listener.lock();
  const std::string activity = listener && !group.leaving ? listener->activity(rank) : std::string();
  if (!activity.empty())
    status.message += fmt::format("; rank {} was waiting for {}", group.config.rank, activity);
  fail_all(group, status);
}

void Control::Impl::take_query(Link& link, std::uint64_t id, Rank asker, Rank target,
                               std::uint64_t call_index) {
  Group* group = find(id);
  if (group == nullptr || !group->has(asker) || !group->has(target)) return;
  if (target != group->config.rank) {
    ByteWriter writer = frame(ControlFrame::kQuery, id);
    writer.put(asker);
    writer.put(target);
    writer.put(call_index);
    if (const auto next = group->links.find(target); next != group->links.end()) send(*next->second, writer);
    return;
  }
  const auto listener = group->config.listener.lock();
  if (!listener) return;
  const CallAnswer answer = listener->answer(call_index);
  ByteWriter writer = frame(ControlFrame::kReply, id);
  writer.put(asker);
  writer.put(target);
  put_call(writer, answer.asked);
  put_call(writer, answer.last);
  send(link, writer);
}

void Control::Impl::take_reply(std::uint64_t id, Rank asker, Rank target, const CallAnswer& answer) {
  Group* group = find(id);
  if (group == nullptr || !group->has(asker) || !group->has(target)) return;
  if (asker != group->config.rank) {
    ByteWriter writer = frame(ControlFrame::kReply, id);
    writer.put(asker);
    writer.put(target);
    put_call(writer, answer.asked);
    put_call(writer, answer.last);
    if (const auto next = group->links.find(asker); next != group->links.end()) send(*next->second, writer);
    return;
  }
  deliveries_.push_back([listener = group->config.listener, target, answer] {
    if (const auto asking = listener.lock()) asking->on_answer(target, answer);
  });
}

std::int64_t Control::Impl::next_deadline_ns() const {
  std::int64_t deadline_ns = accept_again_ns_ == 0 ? INT64_MAX : accept_again_ns_;
  for (const auto& [id, group] : groups_) {
    if (group.done) return 0;
    deadline_ns = std::min({deadline_ns, group.report_deadline_ns, group.rejoin_deadline_ns});
    for (const auto& [rank, suspicion] : group.suspicions)
      deadline_ns = std::min(deadline_ns, suspicion.deadline_ns);
  }
  for (const Link& link : links_)
    if (link.dialled && !link.greeted && !link.broken) deadline_ns = std::min(deadline_ns, link.deadline_ns);
  return deadline_ns;
}

void Control::Impl::expire(std::int64_t now_ns) {
  expire_dials(now_ns);
  for (auto& [id, group] : groups_) {
    if (now_ns >= group.report_deadline_ns && group.report) fail_here(group, *group.report);
    std::erase_if(group.suspicions, [&, &g = group](const auto& entry) {
      const bool over = now_ns >= entry.second.deadline_ns;
      if (over && entry.second.dead)
        confirm_death(g, entry.first, Status(entry.second.status));
      else if (over && !g.leaving)
        report(g, entry.second.status);
      return over;
    });
    if (now_ns < group.rejoin_deadline_ns) continue;
    group.rejoin_deadline_ns = INT64_MAX;
    // Connect to the members that have not joined. That detects those that died while there was no hub.
    for (Rank r = 0; r < group.size(); ++r)
      if (r != group.config.rank && group.of(r) == Presence::kPresent && !group.links.contains(r))
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
      if (const auto known = group.suspicions.find(r); known != group.suspicions.end() && known->second.dead)
        continue;
      if (process.uid == options_.self.uid || process.node_key != options_.self.node_key) continue;
      wanted.insert(process.uid);
      pids[process.uid] = process.pid;
    }
  }
  return wanted;
}

}  // namespace hips::comm
