// Control::gather(): what the processes that are left give each other, decided by the hub and kept where a new hub can learn it.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/control/control_frames.hpp"
#include "lib/comm/control/control_impl.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

/// How often a waiting rank says so.
constexpr std::int64_t kWarnEveryNs = 10'000'000'000;
constexpr std::int64_t kTickNs = 1'000'000;
/// How often the hub asks ranks whose parts are missing whether they still have the communicator.
constexpr std::int64_t kAskEveryNs = 200'000'000;
/// Of how many communicators of a group the last result is remembered.
constexpr std::size_t kMostGathers = 256;

Status not_in_time(std::int64_t timeout_ns) {
  return Status::error(
      Code::kTimeout,
      fmt::format("not all ranks that are left have shrunk the communicator within {} ms; this "
                  "rank is left out",
                  timeout_ns / 1'000'000));
}

}  // namespace

/// Of `gather`, to which this process has given its part.
ByteWriter Control::Impl::part_frame(const Group& group, std::uint64_t id, const Gather& gather) {
  ByteWriter writer = rank_frame(ControlFrame::kGather, group.id, group.rank);
  writer.put(id);
  writer.put(gather.round);
  writer.put(gather.from);
  put_ranks(writer, gather.ranks);
  writer.put_bytes(gather.parts.at(group.rank));
  return writer;
}

ByteWriter Control::Impl::decision_frame(const Group& group, std::uint64_t id, const Gather& gather) {
  ByteWriter writer = frame(ControlFrame::kGathered, group.id);
  writer.put(id);
  writer.put(gather.decided);
  writer.put(gather.from);
  put_ranks(writer, gather.ranks);
  writer.put(static_cast<std::uint32_t>(gather.result.size()));
  for (const auto& [rank, part] : gather.result) {
    writer.put(rank);
    writer.put_bytes(part);
  }
  return writer;
}

Control::Impl::Gather& Control::Impl::gather_of(Group& group, std::uint64_t id) {
  const auto [at, is_new] = group.gathers.try_emplace(id);
  if (!is_new) return at->second;
  group.gather_order.push_back(id);
  if (group.gather_order.size() > kMostGathers) {
    group.gathers.erase(group.gather_order.front());
    group.gather_order.pop_front();
  }
  return at->second;
}

Result<std::vector<std::optional<Blob>>> Control::Impl::gather(std::uint64_t id, std::uint64_t round,
                                                               std::span<const std::byte> mine,
                                                               std::int64_t timeout_ns,
                                                               const std::function<void()>& tick) {
  std::unique_lock lock(mutex_);
  const auto [group, member] = find_member(id);
  if (forked_ || stop_ || member == nullptr)
    return fail(Code::kInternal, "this process has left the communicator");
  if (member->has_given_up) return fail(not_in_time(timeout_ns));
  const std::uint64_t group_id = group->id;
  const Rank rank = group->rank;
  const std::vector<Rank> ranks = member->ranks;
  try {
    take_part(*group, nullptr, id, {round, member->from, ranks}, rank, {mine.begin(), mine.end()});
    const Gather& gather = gather_of(*group, id);
    if (!group->is_hub() && group->hub_link != nullptr && gather.parts.contains(rank))
      send(*group->hub_link, part_frame(*group, id, gather));
  } catch (const std::bad_alloc&) {
    lost_messages_ = true;  // the thread sends what was not sent
    wake();
    throw;
  }
  const auto result = [&]() -> const std::map<Rank, Blob>* {
    Group* const known = find(group_id);
    const auto gather = known == nullptr ? decltype(known->gathers.end())() : known->gathers.find(id);
    if (known == nullptr || gather == known->gathers.end()) return nullptr;
    return gather->second.decided >= round ? &gather->second.result : nullptr;
  };
  const auto is_over = [&] {
    const Group* const known = find(group_id);
    return known == nullptr || known->is_given_up || stop_ || result() != nullptr;
  };
  std::int64_t waited_ns = 0;
  while (!is_over()) {
    if (waited_ns >= timeout_ns) {
      give_up(group_id, id);
      return fail(not_in_time(timeout_ns));
    }
    const std::int64_t before_ns = now_ns();
    changed_.wait_for(lock, std::chrono::nanoseconds(kTickNs), is_over);
    if (tick) {
      lock.unlock();
      tick();
      lock.lock();
    }
    const std::int64_t now = waited_ns + now_ns() - before_ns;
    if (now / kWarnEveryNs != waited_ns / kWarnEveryNs)
      log::warn(Subsystem::kControl, "waiting until all ranks that are left shrink the communicator");
    waited_ns = now;
  }
  const auto* const parts = result();
  if (find(group_id) == nullptr || stop_)
    return fail(Code::kInternal, "this process has left the communicator");
  if (parts == nullptr || !parts->contains(rank))
    return fail(Code::kPeerLost, "the other ranks take this one for dead, or it has given up");
  std::vector<std::optional<Blob>> by_rank;
  for (const Rank each : ranks) {
    const auto found = parts->find(each);
    by_rank.push_back(found == parts->end() ? std::nullopt : std::optional(found->second));
  }
  return by_rank;
}

/// This process takes no part any more: the others need not wait for it.
void Control::Impl::give_up(std::uint64_t group_id, std::uint64_t id) {
  Group* const group = find(group_id);
  Member* const member = group == nullptr ? nullptr : group->find(id);
  if (member == nullptr) return;
  member->has_given_up = true;
  if (group->is_hub()) {
    take_absence(*group, id, group->rank);
  } else if (group->hub_link != nullptr) {
    CallAnswer answer;
    answer.last.kind = CallEntry::Kind::kDestroyed;
    send(*group->hub_link, reply_frame(group->id, id, group->hub, group->rank, answer));
  }
}

void Control::Impl::take_absence(Group& group, std::uint64_t id, Rank rank) {
  const auto known = group.gathers.find(id);
  if (known == group.gathers.end()) return;
  known->second.absent.insert(rank);
  decide(group, id);
}

/// Ranks may have destroyed the communicator while their processes go on, or never make it.
void Control::Impl::ask_for_parts(Group& group, std::int64_t now_ns) {
  for (auto& [id, gather] : group.gathers) {
    if (!group.asks_for(gather) || now_ns < gather.ask_ns) continue;
    gather.ask_ns = now_ns + kAskEveryNs;
    for (const Rank rank : std::vector(gather.ranks)) {
      if (group.of(rank) != Presence::kPresent || gather.parts.contains(rank)) continue;
      if (rank != group.rank) {
        if (const auto link = group.links.find(rank); link != group.links.end())
          send(*link->second, query_frame(group.id, id, gather.from, group.rank, rank, 0));
      } else if (const auto answer = answer_to(group, {id, gather.from}, 0);
                 answer && answer->last.kind == CallEntry::Kind::kDestroyed) {
        take_absence(group, id, rank);
      }
    }
  }
}

/// kGather and kGathered.
void Control::Impl::take_gather_frame(Link& link, ControlFrame type, std::uint64_t id, ByteReader& reader) {
  const Rank sender = type == ControlFrame::kGather ? reader.get<Rank>() : -1;
  const auto communicator = reader.get<std::uint64_t>();
  const auto round = reader.get<std::uint64_t>();
  const auto from = reader.get<std::uint64_t>();
  std::vector<Rank> ranks = get_ranks(reader);
  Group* const group = find(id);
  const bool is_known = group != nullptr && group->has_all(ranks);
  if (type == ControlFrame::kGather) {
    const auto part = reader.get_bytes();
    if (reader.ok() && is_known && std::ranges::count(ranks, sender) != 0 &&
        group->member(sender).uid == link.uid)
      take_part(*group, &link, communicator, {round, from, std::move(ranks)}, sender,
                {part.begin(), part.end()});
    return;
  }
  std::map<Rank, Blob> result;
  for (auto count = reader.get<std::uint32_t>(); count > 0 && reader.ok(); --count) {
    const auto rank = reader.get<Rank>();
    const auto part = reader.get_bytes();
    result[rank].assign(part.begin(), part.end());
  }
  if (reader.ok() && is_known)
    take_decision(*group, communicator, {round, from, std::move(ranks)}, std::move(result));
}

/// `rank` gives its part, for which it may be told what was decided; null: this process.
void Control::Impl::take_part(Group& group, Link* link, std::uint64_t id, RoundOf of, Rank rank, Blob part) {
  Gather& gather = gather_of(group, id);
  if (of.round <= gather.decided) {
    // The hub that decided it has died before it could tell that rank.
    if (link != nullptr) send(*link, decision_frame(group, id, gather));
    return;
  }
  if (of.round < gather.round) return;
  if (of.round != gather.round) begin_round(gather, std::move(of));
  gather.parts[rank] = std::move(part);
  decide(group, id);
}

void Control::Impl::begin_round(Gather& gather, RoundOf of) {
  gather.round = of.round;
  gather.from = of.from;
  gather.ranks = std::move(of.ranks);
  gather.parts.clear();
  gather.ask_ns = now_ns() + kAskEveryNs;
  wake();
}

/// The hub decides once all that are left have given their parts. A rank whose end is not confirmed yet is waited for: either its
/// leave message comes, or it has died.
void Control::Impl::decide(Group& group, std::uint64_t id) {
  Gather& gather = gather_of(group, id);
  // Members have heard, or will, that a hub that leaves is none.
  if (!group.is_hub() || group.leaving || gather.round <= gather.decided) return;
  const auto is_left = [&](Rank rank) {
    return group.of(rank) == Presence::kPresent && !gather.absent.contains(rank);
  };
  for (const Rank rank : gather.ranks)
    if (is_left(rank) && (group.deaths.contains(rank) || !gather.parts.contains(rank))) return;
  std::erase_if(gather.parts, [&](const auto& entry) { return !is_left(entry.first); });
  set_decided(group, id, gather.round, std::exchange(gather.parts, {}));
}

void Control::Impl::set_decided(Group& group, std::uint64_t id, std::uint64_t round,
                                std::map<Rank, Blob> result) {
  Gather& gather = gather_of(group, id);
  gather.decided = round;
  gather.result = std::move(result);
  changed_.notify_all();
  if (group.is_hub()) tell_decision(group, id);
}

void Control::Impl::tell_decision(Group& group, std::uint64_t id) {
  const Gather& gather = gather_of(group, id);
  const ByteWriter writer = decision_frame(group, id, gather);
  for (const Rank rank : gather.ranks)
    if (const auto link = group.links.find(rank); link != group.links.end()) send(*link->second, writer);
}

/// From the hub; or from a member, which tells a new hub.
void Control::Impl::take_decision(Group& group, std::uint64_t id, RoundOf of, std::map<Rank, Blob> result) {
  Gather& gather = gather_of(group, id);
  if (of.round <= gather.decided) return;
  const std::uint64_t round = of.round;
  if (gather.round <= round) begin_round(gather, std::move(of));
  set_decided(group, id, round, std::move(result));
}

void Control::Impl::decide_all(Group& group) {
  for (const auto& [id, gather] : group.gathers) decide(group, id);
}

/// There is a new hub, or messages may have been lost. To hear of something twice harms nobody.
void Control::Impl::resume_gathers(Group& group) {
  for (const auto& [id, gather] : group.gathers) {
    if (group.is_hub()) {
      if (gather.decided > 0) tell_decision(group, id);
      decide(group, id);
    } else if (group.hub_link != nullptr) {
      if (gather.decided > 0) send(*group.hub_link, decision_frame(group, id, gather));
      if (gather.parts.contains(group.rank)) send(*group.hub_link, part_frame(group, id, gather));
    }
  }
}

}  // namespace hips::comm
