// What a service does about intents: at the node whose ranks have them, and at the home of their keys.

#include <algorithm>

#include "lib/ps/service.hpp"

namespace hips::ps {

void Service::on_intent(const Batch& batch) {
  const auto rank = static_cast<std::size_t>(batch.head().requester);
  const std::uint64_t clock = clocks_[rank];
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Record record = batch.record(i);
    // The longest intent that fits has no end.
    const std::uint64_t end = record.until == UINT32_MAX ? UINT64_MAX : clock + record.until;
    intents_.add(rank, record.key, clock + record.position, end);
  }
  act_on_intents();
}

void Service::act_on_intents() {
  Intents::Changes changes = intents_.take_changes();
  if (replicas_) {
    broke(replicas_->drop(changes.ended));
    // What is wanted again while it ends is asked for when it has ended.
    std::erase_if(changes.begun, [&](Key key) { return replicas_->ends(key); });
  }
  if (!changes.ended.empty()) tell_homes(MailKind::kUnwant, changes.ended);
  want(changes.begun);
  finish_moves();
}

/// Tells the homes that ranks of this node want the keys. Rows that are elsewhere are marked as coming before the home hears of it,
/// which may then send them at once.
void Service::want(std::span<const Key> keys) {
  std::vector<Key> staying, coming;
  for (const Key key : keys) {
    // An intent must not fail a table for want of room, as a localize does.
    const auto is_full = [&] { return store_.num_rows() + coming_.size() >= store_.max_rows(); };
    if (is_coming(key) || store_.with(key, [](std::byte*) {}) == Found::kHere || is_full() ||
        make_first_row(key)) {
      staying.push_back(key);
    } else {
      coming_[key].emplace_back();
      coming.push_back(key);
    }
  }
  tell_homes(MailKind::kWant, staying);
  tell_homes(MailKind::kWantMove, coming);
}

/// At the home: the row moves to the only node that wants it; what several want stays.
void Service::wanted_by(std::int32_t node, std::span<const Key> keys, bool can_move) {
  std::vector<Key> moving, staying, copied;
  for (const Key key : keys) {
    auto& nodes = wanting_[key];
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    if (can_move) (nodes.size() == 1 ? moving : staying).push_back(key);
    if (!can_move || nodes.size() > 1) copied.push_back(key);
  }
  tell_node(MailKind::kStays, node, staying);
  ask_owners_to_replicate(node, copied);
  if (!moving.empty()) move(moving, node);
}

/// At the home: the row can move to the node that is the last one to want it.
void Service::unwanted_by(std::int32_t node, std::span<const Key> keys) {
  std::vector<std::pair<std::int32_t, Key>> alone;
  for (const Key key : keys) {
    const auto known = wanting_.find(key);
    if (known == wanting_.end()) continue;
    auto& nodes = known->second;
    std::erase(nodes, node);
    if (nodes.size() == 1 && nodes.front() != owner_of(key)) alone.emplace_back(nodes.front(), key);
    if (nodes.empty()) wanting_.erase(known);
  }
  std::sort(alone.begin(), alone.end());
  std::vector<Key> of_node;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    of_node.push_back(alone[i].second);
    if (i + 1 < alone.size() && alone[i + 1].first == alone[i].first) continue;
    tell_node(MailKind::kAlone, alone[i].first, of_node);
    of_node.clear();
  }
}

/// From the home to a node.
void Service::tell_node(MailKind kind, std::int32_t node, std::span<const Key> keys) {
  if (keys.empty()) return;
  // At home "coming" means that it is the owner: it must not outlast the decision that it is not.
  if (kind == MailKind::kStays && node == options_.node) return stay(keys);
  BatchWriter writer(mail_, service(node), {.kind = kind, .requester = service(options_.node)}, row_bytes_,
                     keys.size());
  for (const Key key : keys) writer.add(key, 0);
}

std::vector<Key> Service::keys_of(const Batch& batch) {
  std::vector<Key> keys;
  keys.reserve(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) keys.push_back(batch.record(i).key);
  return keys;
}

/// The rows do not come, unless a rank has asked for them by localize meanwhile.
void Service::stay(std::span<const Key> keys) {
  std::vector<Key> localized;
  for (const Key key : keys) {
    const auto coming = coming_.find(key);
    if (coming == coming_.end() || coming->second.back().next_owner)
      return broke(Status::error(Code::kInternal, "a row that was not asked for stays"));
    if (!coming->second.back().localizes.empty()) {
      localized.push_back(key);
      continue;
    }
    // Ranks that believe that this node owns the row may have asked meanwhile.
    for (const Waiting& request : coming->second.back().requests) pass_on(key, request);
    coming->second.pop_back();
    if (coming->second.empty()) coming_.erase(coming);
  }
  tell_homes(MailKind::kMove, localized);
}

/// To the home, which knows the owner.
void Service::pass_on(Key key, const Waiting& request) {
  if (request.head.forwarded != 0)
    return broke(
        Status::error(Code::kInternal, "a request waits for a row that its home has sent elsewhere"));
  BatchHead head = request.head;
  head.count = 0;
  BatchWriter writer(mail_, service(options_.places.home_of(key)), head, row_bytes_, 1);
  std::byte* const row = writer.add(key, request.position);
  if (has_rows(head.kind)) std::memcpy(row, request.row.data(), row_bytes_);
}

void Service::on_alone(const Batch& batch) {
  std::vector<Key> keys = keys_of(batch);
  std::erase_if(keys, [&](Key key) { return !intents_.wants(key) || (replicas_ && replicas_->ends(key)); });
  want(keys);
}

}  // namespace hips::ps
