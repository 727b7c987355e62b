#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/control/control_frames.hpp"
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
/// How many communicators of a group are remembered that have failed, and that this process has destroyed.
constexpr std::size_t kMostRemembered = 4096;

}  // namespace

std::pair<Control::Impl::Group*, Control::Impl::Member*> Control::Impl::find_member(std::uint64_t id) {
  const auto known = group_of_.find(id);
  Group* const group = known == group_of_.end() ? nullptr : find(known->second);
  if (group == nullptr) return {};
  return {group, group->find(id)};
}

void Control::Impl::add(Group& group, Member member) {
  group_of_[member.id] = group.id;
  Member& added = group.communicators.insert_or_assign(member.id, std::move(member)).first->second;
  // Others may have made it, and failed, before this rank.
  if (const auto known = group.failures.find(added.id); known != group.failures.end()) {
    added.failure = known->second;
    deliver_failure(added);
  }
  for (Rank rank = 0; rank < static_cast<Rank>(added.ranks.size()); ++rank) {
    const Rank in_group = added.in_group(rank);
    if (group.of(in_group) == Presence::kLeft) deliver_left(added, rank);
    if (group.of(in_group) == Presence::kDead)
      report(group, added.id, death(group, added, rank, group.causes[in_group]));
  }
}

void Control::Impl::derive(DerivedConfig config) {
  const std::lock_guard lock(mutex_);
  if (forked_ || stop_) return;
  const auto [group, from] = find_member(config.from);
  if (from == nullptr || group->leaving) return;
  std::vector<Rank> ranks;
  for (const Rank rank : config.members) ranks.push_back(from->in_group(rank));
  const std::size_t before = deliveries_.size();
  add(*group, {.id = config.id,
               .rank = config.rank,
               .from = config.depends ? config.from : 0,
               .ranks = std::move(ranks),
               .listener = std::move(config.listener)});
  if (deliveries_.size() > before) wake();
}

void Control::Impl::leave(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto [group, member] = find_member(id);
  if (forked_ || member == nullptr) return;
  try {
    const auto listener = member->listener.lock();
    group->destroyed.emplace_back(id, listener ? listener->answer(0).last.index : 0);
    if (group->destroyed.size() > kMostRemembered) group->destroyed.pop_front();
  } catch (const std::bad_alloc&) {  // then questions about it stay without an answer
  }
  group->communicators.erase(id);
  group_of_.erase(id);
  if (!group->communicators.empty()) return;
  try {
    leave(*group);
  } catch (const std::bad_alloc&) {
    wake();  // the thread leaves in its place
  }
}

// ---- Failures ------------------------------------------------------------------------------------------

void Control::Impl::report(std::uint64_t id, const Status& status) {
  const std::lock_guard lock(mutex_);
  const auto [group, member] = find_member(id);
  if (forked_ || member == nullptr) return;
  try {
    report(*group, id, status);
  } catch (const std::bad_alloc&) {
    lost_messages_ = true;  // the thread reports that in its place
    wake();
  }
}

void Control::Impl::report(Group& group, std::uint64_t id, const Status& status) {
  if (group.failures.contains(id) || group.reports.contains(id)) return;
  if (group.is_hub()) {
    take_report(group, id, status);
  } else {
    group.reports[id] = {status, now_ns() + kReportWaitNs};
    if (group.hub_link != nullptr)
      send(*group.hub_link, status_frame(ControlFrame::kReport, group.id, id, status));
  }
  wake();
}

void Control::Impl::suspect(std::uint64_t id, Rank rank, const Status& status) {
  const std::lock_guard lock(mutex_);
  const auto [group, member] = find_member(id);
  if (forked_ || member == nullptr || !member->has(rank)) return;
  const Rank in_group = member->in_group(rank);
  if (group->of(in_group) == Presence::kLeft || group->deaths.contains(in_group)) return;
  const std::int64_t wait_ns = status.sys_errno == ETIMEDOUT ? kSilentSuspicionNs : kSuspicionNs;
  member->suspicions.try_emplace(rank, Member::Suspicion{status, now_ns() + wait_ns});
  wake();
}

/// A rank that was reported to have left may have done so only because a process died, whose death is held back. Then the control
/// thread confirms that first (expire()).
void Control::Impl::take_report(Group& group, std::uint64_t id, const Status& status) {
  if (group.failures.contains(id)) return;
  if (!group.is_hub() || status.code != Code::kPeerLost || group.deaths.empty()) {
    fail_all(group, id, status);
    return;
  }
  group.held_reports.emplace_back(id, status);
  // Due, in their order.
  for (auto& [rank, death] : group.deaths) death.deadline_ns -= Group::kMissingCheckNs;
  wake();
}

void Control::Impl::confirm_deaths(Group& group, std::map<Rank, Group::Death> deaths) {
  std::vector<std::pair<Rank, Group::Death>> by_time(deaths.begin(), deaths.end());
  std::ranges::stable_sort(by_time, {}, [](const auto& entry) { return entry.second.deadline_ns; });
  for (const auto& [rank, death] : by_time) confirm_death(group, rank, death.cause);
  // Others may have been detected meanwhile, and are due when they are the cause.
  if (!group.deaths.empty()) return;
  for (const auto& [id, status] : std::exchange(group.held_reports, {})) fail_all(group, id, status);
}

/// The hub's decision: the first failure becomes the failure of all members. Those that are not members, or not yet,
/// remember it.
void Control::Impl::fail_all(Group& group, std::uint64_t id, const Status& status) {
  if (group.failures.contains(id)) return;
  tell_members(group, status_frame(ControlFrame::kFailed, group.id, id, status), -1);
  fail_here(group, id, status);
}

void Control::Impl::fail_here(Group& group, std::uint64_t id, const Status& status) {
  if (!group.failures.contains(id)) {
    group.failures.emplace(id, status);
    group.failure_order.push_back(id);
    log::info(Subsystem::kControl, "communicator {:x} failed: {}", id, group.failures.at(id).message);
    if (group.failure_order.size() > kMostRemembered) {
      group.failures.erase(group.failure_order.front());
      group.failure_order.pop_front();
    }
  }
  // Also where memory ran out half way before. `status` may be that of the report itself, and is not read after this.
  const Status& known = group.failures.at(id);
  group.reports.erase(id);
  Member* const member = group.find(id);
  if (member == nullptr || member->failure) return;
  deliveries_.reserve(deliveries_.size() + 1);
  member->failure = known;
  deliver_failure(*member);
}

void Control::Impl::deliver_failure(const Member& member) {
  deliveries_.push_back([listener = member.listener, status = *member.failure] {
    if (const auto target = listener.lock()) target->on_failed(status);
  });
}

void Control::Impl::deliver_left(const Member& member, Rank rank) {
  deliveries_.push_back([listener = member.listener, rank] {
    if (const auto target = listener.lock()) target->on_left(rank);
  });
}

/// The thread ran out of memory while it handled messages, so peers may wait for an answer that never comes, and what it
/// has noted may not have been sent. To hear of it twice harms nobody.
void Control::Impl::fail_without_memory() {
  for (auto& [group_id, group] : groups_) {
    if (group.done || group.leaving) continue;
    for (auto& [id, member] : group.communicators) {
      const auto reported = group.reports.find(id);
      if (const auto known = group.failures.find(id); !member.failure && known != group.failures.end()) {
        fail_here(group, id, Status(known->second));
      } else if (!member.failure && reported == group.reports.end()) {
        report(group, id,
               Status::error(Code::kOutOfMemory,
                             fmt::format("rank {} ({}) has no memory for control messages", member.rank,
                                         to_string(group.member(group.rank))),
                             Scope::kCommunicator));
        continue;
      }
      const Status& known = member.failure ? *member.failure : reported->second.status;
      if (group.is_hub())
        tell_members(group, status_frame(ControlFrame::kFailed, group_id, id, known), -1);
      else if (group.hub_link != nullptr)
        send(*group.hub_link, status_frame(ControlFrame::kReport, group_id, id, known));
      if (member.failure) deliver_failure(member);
    }
    resume_gathers(group);
  }
  lost_messages_ = false;
}

Status Control::Impl::death(const Group& group, const Member& member, Rank rank, const std::string& cause) {
  Status status = Status::error(
      Code::kPeerLost,
      fmt::format("rank {} ({}) {}", rank, to_string(group.member(member.in_group(rank))), cause),
      Scope::kCommunicator);
  status.rank = rank;
  return status;
}

/// Adds what this rank was waiting for.
Status Control::Impl::with_activity(const Group& group, const Member& member, Status status) {
  const auto listener = member.listener.lock();
  const std::string activity = listener && !group.leaving ? listener->activity(status.rank) : std::string();
  if (!activity.empty()) status.message += fmt::format("; rank {} was waiting for {}", member.rank, activity);
  return status;
}

void Control::Impl::fail_members_of(Group& group, Rank dead,
                                    const std::function<void(Member&, const Status&)>& act) {
  for (auto& [id, member] : group.communicators)
    if (const Rank rank = member.of(dead); rank >= 0)
      act(member, death(group, member, rank, group.causes[dead]));
}

void Control::Impl::expire_members(Group& group, std::int64_t now_ns) {
  std::map<std::uint64_t, Status> over;
  for (const auto& [id, report] : group.reports)
    if (now_ns >= report.deadline_ns) over.emplace(id, report.status);
  for (const auto& [id, status] : over) fail_here(group, id, status);
  for (auto& [id, member] : group.communicators) {
    std::erase_if(member.suspicions, [&, &m = member](const auto& entry) {
      if (now_ns < entry.second.deadline_ns) return false;
      report(group, m.id, entry.second.status);
      return true;
    });
  }
}

// ---- Queries -------------------------------------------------------------------------------------------

void Control::Impl::query(std::uint64_t id, Rank rank, std::uint64_t call_index) {
  const std::lock_guard lock(mutex_);
  const auto [group, member] = find_member(id);
  if (forked_ || member == nullptr || !member->has(rank) || rank == member->rank) return;
  const ByteWriter writer =
      query_frame(group->id, id, member->from, group->rank, member->in_group(rank), call_index);
  if (!group->is_hub()) {
    if (group->hub_link != nullptr) send(*group->hub_link, writer);
  } else if (const auto link = group->links.find(member->in_group(rank)); link != group->links.end()) {
    send(*link->second, writer);
  }
}

void Control::Impl::take_query(Link& link, Group& group, Asked of, Rank asker, Rank target,
                               std::uint64_t call_index) {
  const std::uint64_t id = of.id;
  if (target != group.rank) {
    if (const auto next = group.links.find(target); next != group.links.end())
      send(*next->second, query_frame(group.id, id, of.from, asker, target, call_index));
    return;
  }
  if (const auto answer = answer_to(group, of, call_index))
    send(link, reply_frame(group.id, id, asker, target, *answer));
}

std::optional<CallAnswer> Control::Impl::answer_to(const Group& group, Asked of, std::uint64_t call_index) {
  CallAnswer answer;
  if (const auto member = group.communicators.find(of.id); member != group.communicators.end()) {
    const auto listener = member->second.listener.lock();
    if (!listener) return {};
    answer = listener->answer(call_index);
    if (member->second.has_given_up) answer.last.kind = CallEntry::Kind::kDestroyed;
    return answer;
  }
  const auto find_destroyed = [&](std::uint64_t one) {
    return std::ranges::find(group.destroyed, one, &std::pair<std::uint64_t, std::uint64_t>::first);
  };
  const auto gone = find_destroyed(of.id);
  // This rank may still make it, unless that from which it derives has failed or been destroyed here.
  const bool never_comes =
      of.from != 0 && (group.failures.contains(of.from) || find_destroyed(of.from) != group.destroyed.end());
  if (gone == group.destroyed.end() && !never_comes) return {};
  answer.last.kind = CallEntry::Kind::kDestroyed;
  answer.last.index = gone == group.destroyed.end() ? 0 : gone->second;
  return answer;
}

void Control::Impl::take_reply(Group& group, std::uint64_t id, Rank asker, Rank target,
                               const CallAnswer& answer) {
  if (asker != group.rank) {
    if (const auto next = group.links.find(asker); next != group.links.end())
      send(*next->second, reply_frame(group.id, id, asker, target, answer));
    return;
  }
  if (answer.last.kind == CallEntry::Kind::kDestroyed) take_absence(group, id, target);
  const Member* const member = group.find(id);
  if (member == nullptr || member->of(target) < 0) return;
  deliveries_.push_back([listener = member->listener, rank = member->of(target), answer] {
    if (const auto asking = listener.lock()) asking->on_answer(rank, answer);
  });
}

}  // namespace hips::comm
