#include "lib/ps/model/update_scheduler.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/log.hpp"
#include "lib/ps/model/batches.hpp"

namespace hips::ps {
namespace {

// With so many groups outstanding updates wait for the next plan. With more at once each is slower and fewer updates travel as one; with fewer, updates wait. Longer chains couple more nodes: the
// slowest decides. Where others are on their way a group, or a chain of nodes that values are sent to, waits until it has so many
// members for each of them. By simulation of 24 workers and 4 shards, tests/ps/model/model_protocol_test.cpp.
constexpr std::size_t kMostOutstandingGroups = 3, kMostMembers = 8, kLeastMembers = 2;
constexpr std::size_t kMostSending = 2, kLeastAsking = 3;

Status broken(const char* what) {
  return Status::error(Code::kMismatch, fmt::format("model: {}", what), Scope::kCommunicator);
}

}  // namespace

UpdateScheduler::UpdateScheduler(Options options, Mail& mail, const Clock& clock)
    : options_(std::move(options)),
      mail_(mail),
      clock_(clock),
      rates_(static_cast<std::size_t>(options_.places.num_nodes())),
      shards_(options_.shards.num) {}

Status UpdateScheduler::on_mail(const ModelHead& head) {
  const auto num_ranks = static_cast<Rank>(options_.places.node_of.size());
  if (head.shard >= shards_.size() || head.rank < 0 || head.rank >= num_ranks || head.next >= num_ranks)
    return broken("a message to the scheduler names no shard or rank");
  ShardState& shard = shards_[head.shard];
  switch (head.kind) {
    case ModelMail::kRequest:
      return on_request(head);
    case ModelMail::kApplied:
      return on_applied(head);
    case ModelMail::kAsk:
      shard.asking.push_back(head.rank);
      send_values(head.shard);
      return Status::success();
    case ModelMail::kSent:
      if (shard.sending.empty()) return broken("a shard's node has sent values that nobody asked for");
      end_chain(head.shard);
      send_values(head.shard);
      return Status::success();
    case ModelMail::kRate:
      if (head.version > 0)
        rates_.add(node_of(head.rank), static_cast<double>(head.offset) / static_cast<double>(head.version));
      return Status::success();
    default:
      return broken("a message to the scheduler is of an unknown kind");
  }
}

Status UpdateScheduler::on_request(const ModelHead& head) {
  ShardState& shard = shards_[head.shard];
  if (head.version > shard.version)
    return broken("an update is of a version that the shard does not have yet");
  shard.waiting.push_back({.rank = head.rank,
                           .update = head.update,
                           .version = head.version,
                           .begin_ns = options_.trace != nullptr ? clock_.now_ns() : 0});
  plan(head.shard);
  return Status::success();
}

Status UpdateScheduler::on_applied(const ModelHead& head) {
  ShardState& shard = shards_[head.shard];
  const auto at = std::ranges::find(shard.outstanding, head.number, &Group::number);
  if (at == shard.outstanding.end()) return broken("a group of updates was applied that is not outstanding");
  Group& group = *at;
  // As if they were applied one by one, the oldest first.
  std::ranges::stable_sort(group.members, {}, &Waiting::version);
  for (std::size_t i = 0; i < group.members.size(); ++i)
    tell_outcome(head.shard, group.members[i], head.version + i, &group);
  shard.outstanding.erase(at);
  plan(head.shard);
  return Status::success();
}

/// Orders what waits, unless more can still join it.
void UpdateScheduler::plan(std::uint16_t number) {
  ShardState& shard = shards_[number];
  const std::size_t num = shard.outstanding.size();
  if (num >= kMostOutstandingGroups || shard.waiting.empty() || shard.waiting.size() < kLeastMembers * num)
    return;
  const std::vector<Waiting> waiting = std::exchange(shard.waiting, {});
  const double at_shard = rates_.of(number);
  const auto bytes = static_cast<double>(options_.shards.bytes(number));
  std::vector<WaitingUpdate> updates;
  for (const Waiting& update : waiting)
    updates.push_back(
        {.version = update.version,
         .time_ns = static_cast<std::int64_t>(bytes / std::min(at_shard, rates_.of(node_of(update.rank))))});
  const Batches batches = plan_batches(updates, shard.version, options_.delay_max);
  for (const std::size_t i : batches.hopeless) {
    log::debug(
        log::Subsystem::kComm,
        "model: shard {}: hands an update of rank {} back: it is of version {}, the shard has {}, delay_max is {}",
        number, waiting[i].rank, waiting[i].version, shard.version, options_.delay_max);
    tell_outcome(number, waiting[i], shard.version, nullptr);
  }
  for (const auto& group : batches.groups) {
    std::vector<Waiting> members;
    for (const std::size_t i : group) members.push_back(waiting[i]);
    // The oldest first, so that a delay that is possible in the whole group is in a part of it.
    std::ranges::stable_sort(members, {}, &Waiting::version);
    while (members.size() > kMostMembers) {
      const auto end = members.begin() + static_cast<std::ptrdiff_t>(kMostMembers);
      start(number, {members.begin(), end});
      members.erase(members.begin(), end);
    }
    start(number, std::move(members));
  }
}

/// Makes a chain of the members: each sends to the next, the last to the shard.
void UpdateScheduler::start(std::uint16_t number, std::vector<Waiting> members) {
  ShardState& shard = shards_[number];
  // Members of one node are neighbours, and those of the shard's node last: they add what has arrived there.
  std::ranges::stable_sort(members, {}, [&](const Waiting& update) {
    const std::size_t node = node_of(update.rank);
    return std::pair(node == number, node);
  });
  if (log::passes(log::Subsystem::kComm, log::LogLevel::kDebug)) {
    std::vector<std::string> ranks;
    for (const Waiting& update : members)
      ranks.push_back(fmt::format("{} (of version {})", update.rank, update.version));
    log::debug(log::Subsystem::kComm,
               "model: shard {}: group {}, {} updates as one, from version {} on: ranks {}", number,
               shard.num_groups + 1, members.size(), shard.version, fmt::join(ranks, ", "));
  }
  ++shard.num_groups;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const bool is_last = i + 1 == members.size();
    ModelHead head{.kind = ModelMail::kJoin, .flag = i > 0, .shard = number};
    head.number = shard.num_groups;
    head.rank = members[i].rank;
    head.update = members[i].update;
    head.next = is_last ? -1 : members[i + 1].rank;
    head.more = is_last ? static_cast<std::uint32_t>(members.size()) : members[i + 1].update;
    write(mail_, options_.places.service_at(members[i].rank), head);
  }
  std::vector<std::uint64_t> versions;
  for (const Waiting& update : members) versions.push_back(update.version);
  std::ranges::sort(versions);
  ModelHead expect{
      .kind = ModelMail::kExpect, .shard = number, .version = UINT64_MAX, .number = shard.num_groups};
  for (std::size_t i = 0; i < versions.size(); ++i)
    expect.version = std::min(expect.version, options_.delay_max - (shard.version + i - versions[i]));
  expect.more = static_cast<std::uint32_t>(members.size());
  write(mail_, service_of_shard(number), expect);
  shard.version += members.size();
  shard.outstanding.push_back({.number = shard.num_groups, .members = std::move(members)});
}

/// Sends the values to all who ask, as soon as the shard's node has sent those of before.
void UpdateScheduler::send_values(std::uint16_t number) {
  ShardState& shard = shards_[number];
  const std::size_t num = shard.sending.size();
  if (num >= kMostSending || shard.asking.empty() || shard.asking.size() < kLeastAsking * num) return;
  std::vector<Rank> chain = std::exchange(shard.asking, {});
  std::ranges::stable_sort(chain, std::greater{}, [&](Rank service) { return rates_.of(node_of(service)); });
  log::debug(log::Subsystem::kComm,
             "model: shard {}: sends its values to the nodes of ranks {}, one after the other", number,
             fmt::join(chain, ", "));
  shard.sending.push_back({.number = ++shard.num_chains,
                           .num_nodes = chain.size(),
                           .begin_ns = options_.trace != nullptr ? clock_.now_ns() : 0});
  chain.insert(chain.begin(), service_of_shard(number));
  for (std::size_t i = 0; i < chain.size(); ++i) {
    ModelHead head{.kind = ModelMail::kRelay, .shard = number};
    head.number = shard.num_chains;
    head.next = i + 1 < chain.size() ? chain[i + 1] : -1;
    write(mail_, chain[i], head);
  }
}

void UpdateScheduler::tell_outcome(std::uint16_t shard, const Waiting& update, std::uint64_t version,
                                   const Group* group) {
  ModelHead head{.kind = ModelMail::kOutcome, .flag = group != nullptr, .shard = shard, .version = version};
  head.update = update.update;
  head.rank = update.rank;
  write(mail_, options_.places.service_at(update.rank), head);
  if (options_.trace == nullptr) return;
  options_.trace->record({.kind = TraceEvent::Kind::kUpdate,
                          .begin_ns = update.begin_ns,
                          .end_ns = clock_.now_ns(),
                          .communicator = options_.id,
                          .sequence = group != nullptr ? group->number : 0,
                          .peer = update.rank,
                          .bytes = static_cast<std::int64_t>(options_.shards.bytes(shard)),
                          .shard = shard,
                          .members = group != nullptr ? static_cast<std::int32_t>(group->members.size()) : 0,
                          .version = static_cast<std::int64_t>(update.version),
                          .delay = static_cast<std::int64_t>(version - update.version)});
}

/// The shard's node has sent its values to the first node.
void UpdateScheduler::end_chain(std::uint16_t number) {
  ShardState& shard = shards_[number];
  const Chain chain = shard.sending.front();
  shard.sending.pop_front();
  if (options_.trace == nullptr) return;
  options_.trace->record({.kind = TraceEvent::Kind::kValues,
                          .begin_ns = chain.begin_ns,
                          .end_ns = clock_.now_ns(),
                          .communicator = options_.id,
                          .sequence = chain.number,
                          .bytes = static_cast<std::int64_t>(options_.shards.bytes(number)),
                          .shard = number,
                          .members = static_cast<std::int32_t>(chain.num_nodes)});
}

}  // namespace hips::ps
