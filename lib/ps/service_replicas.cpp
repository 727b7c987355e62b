// What a service does about replicas: at the owner of the rows, and at the nodes that have the replicas.

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "lib/ps/service.hpp"

namespace hips::ps {
namespace {

/// Calls write(node, keys) for the keys of each node.
template <typename Write>
void for_each_node_of(std::vector<std::pair<std::int32_t, Key>>& nodes, Write&& write) {
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Key> keys;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    keys.push_back(nodes[i].second);
    if (i + 1 < nodes.size() && nodes[i + 1].first == nodes[i].first) continue;
    write(nodes[i].first, std::span<const Key>(keys));
    keys.clear();
  }
  nodes.clear();
}

/// The row of a key that has replicas, or is to have some, was not found.
Status not_here(Found found, Key key) {
  if (found == Found::kLatchLost) return latch_lost();
  return Status::error(Code::kInternal,
                       fmt::format("key {} has replicas of a node that does not own it", key));
}

}  // namespace

void Service::on_mail_of_replicas(const Batch& batch) {
  const MailKind kind = batch.head().kind;
  if (!replicas_)
    return broke(Status::error(Code::kInternal, "mail about replicas reached a node that can have none"));
  if (kind == MailKind::kReplicate) replicate(keys_of(batch), node_of(batch.head().requester));
  if (kind == MailKind::kReplica) on_replica(batch);
  if (kind == MailKind::kFlush || kind == MailKind::kRefresh) on_flush(batch);
  if (kind == MailKind::kValue || kind == MailKind::kKnown) broke(replicas_->on_value(batch));
  if (kind == MailKind::kDrop) on_drop(batch);
  if (kind == MailKind::kDropped) on_dropped(batch);
  if (kind == MailKind::kRecall) broke(replicas_->on_recall(batch));
  if (kind == MailKind::kRelayedRows || kind == MailKind::kRelayedDone) broke(replicas_->relay(batch));
  finish_moves();
  tell_answered_clocks();
}

/// At the home: nodes that want rows which stay elsewhere get replicas of them.
void Service::ask_owners_to_replicate(std::int32_t node, std::span<const Key> keys) {
  if (!replicas_) return;
  std::vector<std::pair<std::int32_t, Key>> owners;
  for (const Key key : keys)
    if (const std::int32_t owner = owner_of(key); owner != node) owners.emplace_back(owner, key);
  for_each_node_of(owners, [&](std::int32_t owner, std::span<const Key> of_owner) {
    // In the order in which the home moves rows: this node's own are not mail.
    if (owner == options_.node) return replicate(of_owner, node);
    BatchWriter writer(mail_, service(owner), {.kind = MailKind::kReplicate, .requester = service(node)},
                       row_bytes_, of_owner.size());
    for (const Key key : of_owner) writer.add(key, 0);
  });
}

/// At the owner: the node gets the rows, and is told of changes from now on.
void Service::replicate(std::span<const Key> keys, std::int32_t node) {
  BatchWriter writer(mail_, service(node), {.kind = MailKind::kReplica, .requester = service(options_.node)},
                     row_bytes_, keys.size());
  // Before the first row is copied: a set that comes later is seen.
  store_.set_mark(static_cast<std::uint32_t>(replicated_.size() + keys.size()));
  for (const Key key : keys) {
    if (const auto coming = coming_.find(key); coming != coming_.end()) {
      coming->second.back().replicates.push_back(node);
      continue;
    }
    Holders& holders = replicated_[key];
    if (holder(holders, node) != nullptr) continue;
    Holder added{.node = node, .sent = {}};
    Found found = store_.copy(key, row_.data(), added.sent);
    // An intent does not fail a node that has all the rows that it may have.
    if (found == Found::kAbsent && store_.num_rows() + coming_.size() >= store_.max_rows()) {
      if (holders.empty()) replicated_.erase(key);
      continue;
    }
    if (found == Found::kAbsent && make_first_row(key)) found = store_.copy(key, row_.data(), added.sent);
    if (found != Found::kHere) return broke(not_here(found, key));
    // The row has all pushes of the clocks that all ranks have ended, as far as this node knows.
    std::memcpy(writer.add(key, static_cast<std::uint32_t>(all_clocks_)), row_.data(), row_bytes_);
    holders.push_back(added);
  }
  store_.set_mark(static_cast<std::uint32_t>(replicated_.size()));
}

/// At the owner: takes the row out of use until all replicas have come back. It counts as coming.
void Service::recall(Key key) {
  const auto known = replicated_.find(key);
  Recall& recalled = recalls_[key];
  for (const Holder& one : known->second) recalled.nodes.push_back(one.node);
  replicated_.erase(known);
  store_.set_mark(static_cast<std::uint32_t>(replicated_.size()));
  recalled.row.resize(row_bytes_);
  if (const Found found = store_.take(key, recalled.row.data()); found != Found::kHere) {
    recalls_.erase(key);
    return broke(not_here(found, key));
  }
  coming_[key].emplace_back();
  for (const std::int32_t node : recalled.nodes) to_recall_.emplace_back(node, key);
}

/// A pull, push or set of a row with replicas: of a rank whose node has one, or a set.
void Service::access_replicated(const Batch& batch, std::span<const std::size_t> records) {
  const BatchHead& head = batch.head();
  const Rank own = service(options_.node), through = service(node_of(head.requester));
  const bool pulls = head.kind == MailKind::kPull;
  std::vector<std::size_t> relayed;
  for (const std::size_t i : records) {
    const Record record = batch.record(i);
    if (!coming_.contains(record.key) && head.kind == MailKind::kSet) recall(record.key);
    if (const auto coming = coming_.find(record.key); coming != coming_.end()) {
      Waiting& waiting = coming->second.back().requests.emplace_back();
      waiting.head = head;
      waiting.position = record.position;
      if (!pulls) waiting.row.assign(batch.row(i), batch.row(i) + row_bytes_);
      continue;
    }
    relayed.push_back(i);
  }
  if (!pulls && !relayed.empty()) {
    // The replica has the change before the rank knows that it is done.
    BatchWriter values(mail_, through, {.kind = MailKind::kValue, .requester = own}, row_bytes_,
                       relayed.size());
    for (const std::size_t i : relayed) {
      const Key key = batch.record(i).key;
      const Found found = store_.with(key, [&](std::byte* row) {
        change(head.kind, row, batch.row(i));
        std::memcpy(values.add(key, 0), row, row_bytes_);
      });
      if (found != Found::kHere) return broke(not_here(found, key));
    }
  }
  if (relayed.empty()) return;
  BatchWriter answers(mail_, through,
                      {.kind = pulls ? MailKind::kRelayedRows : MailKind::kRelayedDone,
                       .request = head.request,
                       .requester = head.requester,
                       .answerer = own},
                      row_bytes_, relayed.size());
  for (const std::size_t i : relayed) {
    const Record record = batch.record(i);
    if (!pulls) {
      answers.add(record.key, record.position);
      continue;
    }
    const Found found = store_.with(record.key, [&](std::byte* row) {
      std::memcpy(answers.add(record.key, record.position), row, row_bytes_);
    });
    if (found != Found::kHere) return broke(not_here(found, record.key));
  }
}

/// At the owner: deltas of a node with replicas, or its requests for their values.
void Service::on_flush(const Batch& batch) {
  const bool has_deltas = batch.head().kind == MailKind::kFlush;
  const Rank to = batch.head().requester;
  const std::int32_t node = node_of(to);
  std::vector<Key> known;
  {
    BatchWriter values(mail_, to, {.kind = MailKind::kValue, .requester = service(options_.node)}, row_bytes_,
                       batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Record record = batch.record(i);
      const Key key = record.key;
      const auto add = [&](std::byte* row) { options_.type.apply(row, batch.row(i)); };
      if (const auto recalled = recalls_.find(key); recalled != recalls_.end()) {
        // Its replica ends: the node needs no value.
        if (has_deltas) add(recalled->second.row.data());
        known.push_back(key);
        continue;
      }
      Found found = has_deltas ? store_.with(key, add) : Found::kHere;
      const auto replicated = replicated_.find(key);
      Holder* const of_node = replicated == replicated_.end() ? nullptr : holder(replicated->second, node);
      RowStore::Version now;
      if (found == Found::kHere && of_node != nullptr && record.until == 1)
        found = store_.copy(key, row_.data(), now);
      if (found != Found::kHere) return broke(not_here(found, key));
      if (of_node == nullptr || record.until == 0 || now == of_node->sent) {
        known.push_back(key);
        continue;
      }
      of_node->sent = now;
      std::memcpy(values.add(key, 0, 1), row_.data(), row_bytes_);
    }
  }
  tell_node(MailKind::kKnown, node, known);
}

/// At the owner: a node has replicas no more.
void Service::on_drop(const Batch& batch) {
  const std::int32_t node = node_of(batch.head().requester);
  std::vector<Key> complete;
  {
    BatchWriter answers(mail_, batch.head().requester,
                        {.kind = MailKind::kDropped, .requester = service(options_.node)}, row_bytes_,
                        batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Key key = batch.record(i).key;
      answers.add(key, 0);
      if (const auto recalled = recalls_.find(key); recalled != recalls_.end()) {
        std::erase(recalled->second.nodes, node);
        if (recalled->second.nodes.empty()) complete.push_back(key);
      } else if (const auto known = replicated_.find(key); known != replicated_.end()) {
        std::erase_if(known->second, [&](const Holder& one) { return one.node == node; });
        if (known->second.empty()) replicated_.erase(known);
      }
    }
    store_.set_mark(static_cast<std::uint32_t>(replicated_.size()));
  }
  on_recalled(complete);
}

/// At a node that gets replicas.
void Service::on_replica(const Batch& batch) {
  std::vector<Key> unwanted;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Key key = batch.record(i).key;
    // Ranks here may have begun a clock since the owner sent the row, in which they must see more; then it is asked for again.
    const bool is_old = batch.record(i).position < static_cast<std::uint32_t>(all_clocks_);
    broke(replicas_->add(batch.head().requester, key, batch.row(i), is_old));
    if (!intents_.wants(key)) unwanted.push_back(key);
  }
  broke(replicas_->drop(unwanted));
}

/// The owners know that replicas are gone. A row that was taken back is still wanted, as a replica; not as a row, which the
/// node that took it back has now.
void Service::on_dropped(const Batch& batch) {
  std::vector<Key> own, recalled;
  broke(replicas_->on_dropped(batch, own, recalled));
  const auto is_settled = [&](Key key) {
    return !intents_.wants(key) || replicas_->has(key) || replicas_->ends(key);
  };
  std::erase_if(own, is_settled);
  std::erase_if(recalled, is_settled);
  want(own);
  tell_homes(MailKind::kWant, recalled);
}

/// What has to wait until no other mail is being written to the same nodes.
void Service::finish_moves() {
  for_each_node_of(to_recall_, [&](std::int32_t node, std::span<const Key> keys) {
    tell_node(MailKind::kRecall, node, keys);
  });
  for_each_node_of(to_replicate_,
                   [&](std::int32_t node, std::span<const Key> keys) { replicate(keys, node); });
  for_each_node_of(to_refuse_, [&](std::int32_t node, std::span<const Key> keys) {
    tell_node(MailKind::kDropped, node, keys);
  });
  if (lost_.empty()) return;
  const std::vector<Key> lost = std::exchange(lost_, {});
  tell_homes(MailKind::kWant, lost);
}

/// Deltas go to the owners, and their values come, before others hear of a clock that depends on them.
void Service::when_answered(MailKind kind, std::uint64_t clock) {
  if (replicas_) {
    broke(replicas_->flush(kind == MailKind::kAllClocks));
    replicas_->when_answered({kind, clock});
    tell_answered_clocks();
  } else {
    on_answered(kind, clock);
  }
}

void Service::tell_answered_clocks() {
  Replicas::Event event{};
  while (failure_.ok() && replicas_->take_event(event)) on_answered(event.kind, event.clock);
}

}  // namespace hips::ps
