#include "lib/ps/model/model_agent.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/reduce/reduce.hpp"

namespace hips::ps {
namespace {

/// Bytes that the rate of a node is measured with.
constexpr std::size_t kMeasuredBytes = 256U << 10U;

Status broken_mail(const char* what) {
  return Status::error(Code::kMismatch, fmt::format("model: {}", what), Scope::kCommunicator);
}

}  // namespace

ModelAgent::ModelAgent(Options options, Mail& mail, const Clock& clock)
    : options_(std::move(options)),
      mail_(mail),
      to_nodes_(mail, clock, options_.rank),
      to_ranks_(mail, clock, options_.rank),
      fetching_(options_.shards.num) {
  for (std::uint16_t shard = 0; shard < options_.shards.num; ++shard) {
    if (!is_local(shard)) continue;
    shard_ = shard;
    values_ = first_of(shard);
  }
  for (std::uint16_t shard = 0; options_.divergence_max >= 0 && shard < options_.shards.num; ++shard) {
    const std::int32_t node = replica_node(options_.places, options_.shards, shard);
    if (node < 0) break;
    if (is_local(shard)) divergence_.emplace(options_.divergence_max);
    if (options_.places.service_of[static_cast<std::size_t>(node)] == options_.rank)
      replica_.emplace(shard, first_of(shard));
  }
  options_.first = {};
  if (scheduler() == options_.rank)
    scheduler_.emplace(UpdateScheduler::Options{.places = options_.places,
                                                .shards = options_.shards,
                                                .delay_max = options_.delay_max,
                                                .trace = options_.trace,
                                                .id = options_.id},
                       mail, clock);
}

std::vector<std::byte> ModelAgent::first_of(std::uint16_t shard) const {
  const auto bytes = options_.shards.bytes(shard);
  if (options_.first.empty()) return std::vector<std::byte>(bytes);
  const auto part = options_.first.subspan(options_.shards.begin_byte(shard), bytes);
  return {part.begin(), part.end()};
}

ModelAgent::Vector ModelAgent::empty_vector(std::uint16_t shard) const {
  auto made = std::make_shared<PartialVector>();
  made->bytes.resize(options_.shards.bytes(shard));
  return made;
}

ModelAgent::Vector ModelAgent::copy_of_shard() {
  if (Vector last = copy_.lock(); last && copied_version_ == version_) return last;
  auto made = std::make_shared<PartialVector>();
  made->bytes = values_;
  made->ready = values_.size();
  copy_ = made;
  copied_version_ = version_;
  return made;
}

void ModelAgent::add(std::byte* to, const std::byte* part, std::size_t bytes) const {
  const std::array<const std::byte*, 2> operands{part, to};
  reduce::fold(options_.shards.type, ReduceOp::kSum, to, operands, bytes / size_of(options_.shards.type));
}

Status ModelAgent::check(const ModelMessage& message) const {
  const ModelHead& head = message.head;
  const auto num_ranks = static_cast<Rank>(options_.places.node_of.size());
  if (head.shard >= options_.shards.num || head.rank >= num_ranks || head.next >= num_ranks)
    return broken_mail("a message names no shard or rank");
  const std::size_t size = options_.shards.bytes(head.shard);
  if (head.bytes > 0 && (head.offset > size || head.bytes > size - head.offset || head.rank < 0))
    return broken_mail("a part lies outside its shard");
  return Status::success();
}

Status ModelAgent::on_mail(const ModelMessage& message) {
  const ModelHead& head = message.head;
  if (Status status = check(message); !status.ok()) return status;
  switch (head.kind) {
    case ModelMail::kUpdate:
      return on_update(message);
    case ModelMail::kFetch:
      on_fetch(head);
      return Status::success();
    case ModelMail::kOutcome: {
      if (head.rank < 0) return broken_mail("an outcome is of no rank's update");
      // One that is handed back is here still.
      updates_.erase({head.rank, head.update, head.shard});
      if (head.flag == 0) sent_.drop(head.shard, group_of(head));
      ModelHead out = head;
      out.kind = ModelMail::kEnded;
      write(mail_, head.rank, out);
      return Status::success();
    }
    case ModelMail::kJoin:
      return on_join(head);
    case ModelMail::kExpect:
      if (!is_local(head.shard)) return broken_mail("a group is announced to a node that has not its shard");
      expected_.push_back({.number = head.number, .num_updates = head.more, .may_overtake = head.version});
      apply_what_is_here();
      return Status::success();
    case ModelMail::kRelay:
      return on_relay(head);
    case ModelMail::kSum:
      return head.flag != 0 ? on_sum_of_shard(message) : on_sum(message);
    case ModelMail::kValues:
      return on_values(message);
    case ModelMail::kFlush:
    case ModelMail::kReplica:
    case ModelMail::kStored:
      return on_mail_of_replicas(message);
    case ModelMail::kAsk:
      if (is_local(head.shard) && !is_scheduled(head.shard)) return on_ask(head);
      [[fallthrough]];
    case ModelMail::kRequest:
    case ModelMail::kSent:
    case ModelMail::kApplied:
    case ModelMail::kRate:
      return scheduler_ ? scheduler_->on_mail(head) : broken_mail("a node without a scheduler was asked");
    case ModelMail::kFetched:
    case ModelMail::kEnded:
      break;
  }
  return broken_mail("an answer reached an agent");
}

/// A part of an update of a local rank.
Status ModelAgent::on_update(const ModelMessage& message) {
  const ModelHead& head = message.head;
  const UpdateId id{head.rank, head.update, head.shard};
  OwnUpdate& own = updates_[id];
  if (!own.sum) own.sum = empty_vector(head.shard);
  if (head.offset != own.sum->ready) return broken_mail("a part of an update is missing");
  std::copy_n(message.part, head.bytes, own.sum->bytes.begin() + static_cast<std::ptrdiff_t>(head.offset));
  own.sum->ready += head.bytes;
  if (own.sum->ready < own.sum->bytes.size()) return Status::success();
  ModelHead out{.shard = head.shard, .version = head.version, .rank = head.rank, .update = head.update};
  if (is_scheduled(head.shard)) {
    out.kind = ModelMail::kRequest;
    write(mail_, scheduler(), out);
    return Status::success();
  }
  out.kind = ModelMail::kSum;
  out.flag = 1;
  out.more = 1;
  keep_for_replica(out, own.sum);
  to_nodes_.send(options_.places.service_of[head.shard], out, std::move(own.sum));
  updates_.erase(id);
  return Status::success();
}

Status ModelAgent::on_join(const ModelHead& head) {
  const UpdateId id{head.rank, head.update, head.shard};
  const auto at = updates_.find(id);
  if (at == updates_.end() || at->second.joined)
    return broken_mail("an update joins a group that is not here");
  OwnUpdate& own = at->second;
  own.joined = true;
  ModelHead out{.kind = ModelMail::kSum, .flag = head.next < 0, .shard = head.shard, .number = head.number};
  out.rank = head.next < 0 ? head.rank : head.next;
  out.update = head.next < 0 ? head.update : head.more;
  out.more = head.next < 0 ? head.more : 0;
  const Rank to =
      head.next < 0 ? options_.places.service_of[head.shard] : options_.places.service_at(head.next);
  const Vector sum = own.sum;
  if (head.flag != 0) sum->ready = 0;
  if (head.next < 0) keep_for_replica(out, sum);
  to_nodes_.send(to, out, sum);
  if (head.flag == 0) {
    updates_.erase(at);
    return Status::success();
  }
  const std::vector<std::byte> early = std::exchange(own.early, {});
  return early.empty() ? Status::success() : add_to_own(id, own, early);
}

/// A part of the sum of the members before.
Status ModelAgent::on_sum(const ModelMessage& message) {
  const ModelHead& head = message.head;
  const UpdateId id{head.rank, head.update, head.shard};
  const auto at = updates_.find(id);
  if (at == updates_.end()) return broken_mail("a sum is for an update that is not here");
  OwnUpdate& own = at->second;
  const std::size_t expected = own.joined ? own.sum->ready : own.early.size();
  if (head.offset != expected) return broken_mail("a part of a sum is missing");
  if (own.joined) return add_to_own(id, own, {message.part, head.bytes});
  own.early.insert(own.early.end(), message.part, message.part + head.bytes);
  return Status::success();
}

Status ModelAgent::add_to_own(UpdateId id, OwnUpdate& own, std::span<const std::byte> part) {
  PartialVector& sum = *own.sum;
  add(sum.bytes.data() + sum.ready, part.data(), part.size());
  sum.ready += part.size();
  if (sum.ready == sum.bytes.size()) updates_.erase(id);
  return Status::success();
}

/// A part of a whole group.
Status ModelAgent::on_sum_of_shard(const ModelMessage& message) {
  const ModelHead& head = message.head;
  if (!is_local(head.shard)) return broken_mail("a group reached a node that has not its shard");
  const GroupId key = group_of(head);
  Arriving& group = arriving_[key];
  if (group.sum.empty()) {
    group.sum.resize(values_.size());
    group.version = head.version;
  }
  if (head.offset != group.received) return broken_mail("a part of a group is missing");
  std::copy_n(message.part, head.bytes, group.sum.begin() + static_cast<std::ptrdiff_t>(head.offset));
  group.received += head.bytes;
  if (group.received < group.sum.size()) return Status::success();
  if (head.number == 0) {
    complete_.push_back(key);
    apply_unscheduled();
  } else {
    apply_what_is_here();
  }
  return Status::success();
}

/// Updates that nobody has scheduled, in the order in which they came.
void ModelAgent::apply_unscheduled() {
  while (!complete_.empty()) {
    const GroupId key = complete_.front();
    const Arriving& update = arriving_.at(key);
    // Nobody has looked at its delay. While it waits for the replica the version stays.
    const bool is_applied = version_ - update.version <= options_.delay_max;
    if (is_applied && !admits(key, update)) return;
    ModelHead out{.kind = ModelMail::kOutcome, .flag = is_applied, .shard = shard_, .version = version_};
    if (is_applied)
      apply(update.sum, 1);
    else
      log::debug(
          log::Subsystem::kComm,
          "model: shard {}: hands an update of rank {} back: it is of version {}, the shard has {}, delay_max is {}",
          shard_, std::get<1>(key), update.version, version_, options_.delay_max);
    arriving_.erase(key);
    complete_.erase(complete_.begin());
    out.rank = std::get<1>(key);
    out.update = std::get<2>(key);
    write(mail_, options_.places.service_at(out.rank), out);
  }
}

/// Whether a group may be applied now. If not, it is the next one that is, when the replica has what it lacks.
bool ModelAgent::admits(GroupId group, const Arriving& arriving) {
  if (!divergence_) return true;
  std::vector<Divergence::Flush> flushes;
  const double norm = norm_of(options_.shards.type, arriving.sum);
  const bool is_admitted =
      divergence_->admits(group, options_.places.service_at(std::get<1>(group)), norm, flushes);
  blocked_ = is_admitted ? std::nullopt : std::optional(group);
  for (const Divergence::Flush& flush : flushes) {
    ModelHead out{.kind = ModelMail::kFlush, .shard = shard_, .version = flush.number};
    for (const GroupId& one : flush.groups) {
      std::tie(out.number, out.rank, out.update) = one;
      out.flag = one == flush.groups.back() ? 1 : 0;
      write(mail_, flush.sender, out);
    }
  }
  return is_admitted;
}

/// This node sends a group to its shard.
void ModelAgent::keep_for_replica(const ModelHead& head, Vector sum) {
  if (options_.divergence_max >= 0 && options_.places.num_nodes() > 1)
    sent_.keep(head.shard, group_of(head), std::move(sum));
}

Status ModelAgent::on_mail_of_replicas(const ModelMessage& message) {
  const ModelHead& head = message.head;
  if (head.kind == ModelMail::kFlush) {
    auto sum = sent_.on_flush(head, options_.shards);
    if (!sum) return sum.error();
    if (!*sum) return Status::success();
    ModelHead out{.kind = ModelMail::kReplica, .shard = head.shard, .version = head.version};
    out.rank = options_.rank;
    const auto node = static_cast<std::size_t>(replica_node(options_.places, options_.shards, head.shard));
    to_nodes_.send(options_.places.service_of[node], out, std::move(*sum));
    return Status::success();
  }
  if (head.kind == ModelMail::kReplica) {
    if (!replica_) return broken_mail("a part for a replica reached a node that has none");
    const auto is_whole = replica_->on_part(message, options_.shards.type);
    if (!is_whole) return is_whole.error();
    if (!*is_whole) return Status::success();
    ModelHead out{.kind = ModelMail::kStored, .shard = head.shard, .version = head.version};
    out.rank = head.rank;
    const Rank server = options_.places.service_of[head.shard];
    write(mail_, head.rank, out);
    if (server != head.rank) write(mail_, server, out);
    return Status::success();
  }
  if (head.rank == options_.rank) sent_.on_stored(head);
  if (!is_local(head.shard) || !divergence_) return Status::success();
  divergence_->stored(head.version);
  apply_unscheduled();
  apply_what_is_here();
  return Status::success();
}

/// Applies groups that have arrived, unless earlier ones would be delayed too much.
void ModelAgent::apply_what_is_here() {
  std::uint64_t most = UINT64_MAX;  // updates that may overtake all groups before
  for (std::size_t i = 0; i < expected_.size();) {
    const Expected next = expected_[i];
    const auto at = arriving_.lower_bound({next.number, -1, 0});
    const bool is_here = at != arriving_.end() && std::get<0>(at->first) == next.number &&
                         at->second.received == values_.size() && (!blocked_ || *blocked_ == at->first);
    if (!is_here || next.num_updates > most) {
      most = std::min(most, next.may_overtake);
      ++i;
      continue;
    }
    if (!admits(at->first, at->second)) return;
    for (std::size_t before = 0; before < i; ++before) expected_[before].may_overtake -= next.num_updates;
    ModelHead out{.kind = ModelMail::kApplied, .shard = shard_, .version = version_, .number = next.number};
    out.rank = options_.rank;
    apply(at->second.sum, next.num_updates);
    arriving_.erase(at);
    expected_.erase(expected_.begin() + static_cast<std::ptrdiff_t>(i));
    write(mail_, scheduler(), out);
    // Those before may be overtaken by fewer now.
    most = UINT64_MAX;
    i = 0;
  }
}

void ModelAgent::apply(std::span<const std::byte> sum, std::uint64_t num_updates) {
  add(values_.data(), sum.data(), values_.size());
  version_ += num_updates;
}

void ModelAgent::on_fetch(const ModelHead& head) {
  Fetching& fetching = fetching_[head.shard];
  if (is_local(head.shard)) {
    deliver(head.shard, {{head.rank, head.update}}, copy_of_shard(), version_);
    return;
  }
  // Values that are on their way may be older than what the rank has heard of.
  fetching.waiting.emplace_back(head.rank, head.update);
  if (fetching.asked.empty()) ask(head.shard);
}

void ModelAgent::ask(std::uint16_t shard) {
  Fetching& fetching = fetching_[shard];
  if (fetching.waiting.empty()) return;
  fetching.asked = std::exchange(fetching.waiting, {});
  ModelHead out{.kind = ModelMail::kAsk, .shard = shard};
  out.rank = options_.rank;
  write(mail_, is_scheduled(shard) ? scheduler() : options_.places.service_of[shard], out);
}

/// Without a scheduler: another node wants the values of this one's shard.
Status ModelAgent::on_ask(const ModelHead& head) {
  if (head.rank < 0) return broken_mail("no node asks for values");
  ModelHead out{.kind = ModelMail::kValues, .shard = head.shard, .version = version_};
  out.rank = options_.rank;
  to_nodes_.send(head.rank, out, copy_of_shard());
  return Status::success();
}

Status ModelAgent::on_relay(const ModelHead& head) {
  if (is_local(head.shard)) {
    if (head.next < 0) return broken_mail("values are sent to no node");
    ModelHead out{
        .kind = ModelMail::kValues, .shard = head.shard, .version = version_, .number = head.number};
    out.rank = options_.rank;
    to_nodes_.send(head.next, out, copy_of_shard(), [this, shard = head.shard] {
      ModelHead sent{.kind = ModelMail::kSent, .shard = shard};
      sent.rank = options_.rank;
      write(mail_, scheduler(), sent);
    });
    return Status::success();
  }
  Passing& passing = passing_[{head.shard, head.number}];
  passing.knows_next = true;
  passing.next = head.next;
  if (passing.values) pass_on(head.shard, head.number, passing);
  end_passing(head.shard, head.number);
  return Status::success();
}

void ModelAgent::pass_on(std::uint16_t shard, std::uint64_t number, Passing& passing) {
  if (passing.next < 0) return;
  ModelHead out{.kind = ModelMail::kValues, .shard = shard, .version = passing.version, .number = number};
  out.rank = options_.rank;
  to_nodes_.send(passing.next, out, passing.values);
}

/// Forgets values that are here and on their way to the next node.
void ModelAgent::end_passing(std::uint16_t shard, std::uint64_t number) {
  const auto at = passing_.find({shard, number});
  if (at == passing_.end()) return;
  const Passing& passing = at->second;
  if (passing.knows_next && passing.values && passing.values->ready == passing.values->bytes.size())
    passing_.erase(at);
}

Status ModelAgent::on_values(const ModelMessage& message) {
  const ModelHead& head = message.head;
  Fetching& fetching = fetching_[head.shard];
  Passing& passing = passing_[{head.shard, head.number}];
  if (!passing.values) {
    if (fetching.asked.empty()) return broken_mail("values arrive that this node did not ask for");
    passing.values = empty_vector(head.shard);
    passing.version = head.version;
    if (head.number == 0) passing.knows_next = true;
    if (passing.knows_next) pass_on(head.shard, head.number, passing);
    deliver(head.shard, fetching.asked, passing.values, head.version);
  }
  PartialVector& values = *passing.values;
  if (head.offset != values.ready) return broken_mail("a part of values is missing");
  std::copy_n(message.part, head.bytes, values.bytes.begin() + static_cast<std::ptrdiff_t>(head.offset));
  values.ready += head.bytes;
  if (values.ready < values.bytes.size()) return Status::success();
  end_passing(head.shard, head.number);
  fetching.asked.clear();
  ask(head.shard);
  return Status::success();
}

void ModelAgent::deliver(std::uint16_t shard, const Wanting& to, const Vector& values,
                         std::uint64_t version) {
  for (const auto& [rank, number] : to) {
    ModelHead out{.kind = ModelMail::kFetched, .shard = shard, .version = version};
    out.rank = rank;
    out.update = number;
    to_ranks_.send(rank, out, values);
  }
}

bool ModelAgent::advance() {
  const bool moved = static_cast<int>(to_nodes_.advance()) + static_cast<int>(to_ranks_.advance()) > 0;
  if (const auto measured = to_nodes_.take_measured(kMeasuredBytes);
      measured && options_.least_scheduled_bytes != UINT64_MAX) {
    ModelHead out{.kind = ModelMail::kRate,
                  .offset = measured->bytes,
                  .version = static_cast<std::uint64_t>(measured->ns)};
    out.rank = options_.rank;
    write(mail_, scheduler(), out);
  }
  return moved;
}

}  // namespace hips::ps
