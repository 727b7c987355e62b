#include "lib/ps/replicas.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

namespace hips::ps {
bool Replicas::ends(Key key) const {
  const auto next = ending_.lower_bound({key, -1});
  return next != ending_.end() && next->first.first == key;
}

Replicas::Ending* Replicas::ending(Rank owner, Key key) {
  const auto known = ending_.find({key, owner});
  return known == ending_.end() ? nullptr : &known->second;
}

void Replicas::sent(Replica& replica, const std::vector<std::byte>& delta) {
  replica.missing.push_back(delta);
  replica.groups.push_back(first_group_ + groups_.size() - 1);
  ++groups_.back().num_unanswered;
}

/// Sends what has been collected, a message to each owner; deltas before the end of their replica.
void Replicas::send() {
  const auto to_owners = [&](MailKind kind, std::vector<Outgoing>& out) {
    std::stable_sort(out.begin(), out.end(),
                     [](const Outgoing& a, const Outgoing& b) { return a.owner < b.owner; });
    for (std::size_t begin = 0, end = 0; begin < out.size(); begin = end) {
      while (end < out.size() && out[end].owner == out[begin].owner) ++end;
      BatchWriter writer(mail_, out[begin].owner, {.kind = kind, .requester = service_}, row_bytes_,
                         end - begin);
      for (std::size_t i = begin; i < end; ++i) {
        std::byte* const row = writer.add(out[i].key, 0, out[i].wants_value ? 1 : 0);
        if (has_rows(kind)) std::memcpy(row, out[i].delta.data(), row_bytes_);
      }
    }
    out.clear();
  };
  to_owners(MailKind::kFlush, flushes_);
  to_owners(MailKind::kRefresh, refreshes_);
  to_owners(MailKind::kDrop, drops_);
}

Status Replicas::add(Rank owner, Key key, const std::byte* value, bool is_old) {
  if (!is_old && store_.insert(key, value)) {
    replicas_[key].owner = owner;
    return Status::success();
  }
  Ending& end = ending_[{key, owner}];
  end.replica.owner = owner;
  end.recalled = is_old;
  end.full = !is_old;
  drops_.push_back({.owner = owner, .key = key});
  return Status::success();
}

Status Replicas::give_up(Key key, bool recalled) {
  const auto known = replicas_.find(key);
  if (store_.remove(key, delta_) == Found::kLatchLost) return latch_lost();
  const Rank owner = known->second.owner;
  if (!delta_.empty()) {
    sent(known->second, delta_);
    flushes_.push_back({.owner = owner, .key = key, .delta = delta_});
  }
  drops_.push_back({.owner = owner, .key = key});
  Ending& end = ending_[{key, owner}];
  end.replica = std::move(known->second);
  end.recalled = recalled;
  replicas_.erase(known);
  return Status::success();
}

Status Replicas::drop(std::span<const Key> keys) {
  Status status;
  for (const Key key : keys)
    if (status.ok() && has(key)) status = give_up(key, false);
  send();
  return status;
}

Status Replicas::on_recall(const Batch& batch) {
  Status status;
  for (std::size_t i = 0; i < batch.size() && status.ok(); ++i) {
    const Key key = batch.record(i).key;
    // One that is ending already is on its way to the owner.
    const auto known = replicas_.find(key);
    if (known != replicas_.end() && known->second.owner == batch.head().requester)
      status = give_up(key, true);
  }
  send();
  return status;
}

Status Replicas::answered(Replica& replica) {
  if (replica.missing.empty())
    return Status::error(Code::kMismatch, "an owner answered a delta that was not sent",
                         Scope::kCommunicator);
  --groups_[replica.groups.front() - first_group_].num_unanswered;
  replica.groups.erase(replica.groups.begin());
  replica.missing.erase(replica.missing.begin());
  return Status::success();
}

Status Replicas::on_value(const Batch& batch) {
  const Rank owner = batch.head().requester;
  const bool is_value = batch.head().kind == MailKind::kValue;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Record record = batch.record(i);
    const bool answers = !is_value || record.until == 1;
    if (Ending* const end = ending(owner, record.key); end != nullptr) {
      if (!answers) continue;
      if (Status status = answered(end->replica); !status.ok()) return status;
      continue;
    }
    const auto known = replicas_.find(record.key);
    if (known == replicas_.end() || known->second.owner != owner)
      return Status::error(Code::kMismatch, "a value came of a row that has no replica here",
                           Scope::kCommunicator);
    if (answers)
      if (Status status = answered(known->second); !status.ok()) return status;
    // A delta that the owner has is in the replica, too.
    if (is_value && store_.refresh(record.key, batch.row(i), known->second.missing) == Found::kLatchLost)
      return latch_lost();
  }
  return Status::success();
}

Status Replicas::on_dropped(const Batch& batch, std::vector<Key>& own, std::vector<Key>& recalled) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Key key = batch.record(i).key;
    const auto known = ending_.find({key, batch.head().requester});
    if (known == ending_.end()) {
      // The owner had no row to copy any more.
      recalled.push_back(key);
      continue;
    }
    if (!known->second.replica.missing.empty())
      return Status::error(Code::kMismatch, "an owner forgot a delta", Scope::kCommunicator);
    if (!known->second.full) (known->second.recalled ? recalled : own).push_back(key);
    ending_.erase(known);
  }
  return Status::success();
}

Status Replicas::relay(const Batch& batch) {
  BatchHead head = batch.head();
  const bool rows = head.kind == MailKind::kRelayedRows;
  const Rank to = head.requester;
  const Rank owner = head.answerer;
  head.kind = rows ? MailKind::kRows : MailKind::kDone;
  head.count = 0;
  head.requester = -1;
  head.answerer = -1;
  BatchWriter writer(mail_, to, head, row_bytes_, batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Record record = batch.record(i);
    std::byte* const out = writer.add(record.key, record.position);
    if (!rows) continue;
    std::memcpy(work_.data(), batch.row(i), row_bytes_);
    if (Ending* const end = ending(owner, record.key); end != nullptr) {
      for (const auto& delta : end->replica.missing)
        if (!delta.empty()) store_.type().apply(work_.data(), delta.data());
    } else if (const auto known = replicas_.find(record.key);
               known != replicas_.end() && known->second.owner == owner) {
      // A rank that reads its replica later must not see an older row.
      if (store_.refresh(record.key, batch.row(i), known->second.missing) != Found::kHere ||
          store_.read(record.key, work_.data()) != Found::kHere)
        return latch_lost();
    }
    std::memcpy(out, work_.data(), row_bytes_);
  }
  return Status::success();
}

Status Replicas::flush(bool all) {
  Status status;
  for (auto& [key, replica] : replicas_) {
    if (store_.take_delta(key, delta_) == Found::kLatchLost) {
      status = latch_lost();
      break;
    }
    if (delta_.empty() && !all) continue;
    sent(replica, delta_);
    (delta_.empty() ? refreshes_ : flushes_)
        .push_back({.owner = replica.owner, .key = key, .delta = delta_, .wants_value = all});
  }
  send();
  return status;
}

void Replicas::when_answered(Event event) {
  groups_.back().closed = true;
  groups_.back().event = event;
  groups_.emplace_back();
}

bool Replicas::take_event(Event& event) {
  if (!groups_.front().closed || groups_.front().num_unanswered > 0) return false;
  event = groups_.front().event;
  groups_.pop_front();
  ++first_group_;
  return true;
}

}  // namespace hips::ps
