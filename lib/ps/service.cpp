#include "lib/ps/service.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace hips::ps {

Service::Service(Options options, RowStore& store, Mail& mail)
    : options_(std::move(options)),
      store_(store),
      mail_(mail),
      row_bytes_(options_.type.bytes()),
      row_(row_bytes_) {
  if (options_.first_row.empty()) options_.first_row.resize(row_bytes_);
}

Status Service::on_mail(const Batch& batch) {
  switch (batch.head().kind) {
    case MailKind::kPull:
    case MailKind::kPush:
    case MailKind::kSet:
      on_access(batch);
      break;
    case MailKind::kLocalize:
      on_localize(batch);
      break;
    case MailKind::kMove:
      on_move(batch);
      break;
    case MailKind::kHandOver:
      on_hand_over(batch);
      break;
    case MailKind::kTransfer:
      on_transfer(batch);
      break;
    case MailKind::kRows:
    case MailKind::kDone:
      broke(Status::error(Code::kInternal, "an answer reached the service of a table"));
      break;
  }
  return failure_;
}

void Service::change(MailKind kind, std::byte* row, const std::byte* given) const {
  if (kind == MailKind::kPush) {
    options_.type.apply(row, given);
  } else {
    std::memcpy(row, given, row_bytes_);
  }
}

bool Service::make_first_row(Key key) {
  if (!is_home(key) || owner_.contains(key)) return false;
  broke(store_.insert(key, options_.first_row.data()));
  return failure_.ok();
}

void Service::on_access(const Batch& batch) {
  const BatchHead& head = batch.head();
  const bool pulls = head.kind == MailKind::kPull;
  forwards_.clear();
  {
    BatchWriter answers(mail_, head.requester,
                        {.kind = pulls ? MailKind::kRows : MailKind::kDone, .request = head.request},
                        row_bytes_, batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) store_.prefetch(batch.record(i).key);
    for (std::size_t i = 0; i < batch.size() && failure_.ok(); ++i) {
      const Record record = batch.record(i);
      const auto use = [&](std::byte* row) {
        std::byte* const out = answers.add(record.key, record.position);
        if (pulls) {
          std::memcpy(out, row, row_bytes_);
        } else {
          change(head.kind, row, batch.row(i));
        }
      };
      Found found = store_.with(record.key, use);
      if (found == Found::kAbsent) {
        if (const auto coming = coming_.find(record.key);
            coming != coming_.end() && !coming->second.back().next_owner) {
          Waiting& waiting = coming->second.back().requests.emplace_back();
          waiting.head = head;
          waiting.position = record.position;
          if (!pulls) waiting.row.assign(batch.row(i), batch.row(i) + row_bytes_);
          continue;
        }
        if (make_first_row(record.key)) {
          found = store_.with(record.key, use);
        } else if (failure_.ok()) {
          const std::int32_t home = options_.places.home_of(record.key);
          forwards_.push_back({home == options_.node ? owner_.at(record.key) : home, i});
          continue;
        }
      }
      if (found == Found::kLatchLost)
        broke(Status::error(Code::kPeerLost, "a rank ended while it used a row of the table"));
    }
  }
  // What was not here goes to the owner, or to the home where this node owns the key no more.
  std::stable_sort(forwards_.begin(), forwards_.end(),
                   [](const Forward& a, const Forward& b) { return a.node < b.node; });
  for (std::size_t begin = 0; begin < forwards_.size();) {
    const std::int32_t node = forwards_[begin].node;
    std::size_t end = begin;
    while (end < forwards_.size() && forwards_[end].node == node) ++end;
    BatchHead forwarded = head;
    forwarded.count = 0;
    forwarded.forwarded = is_home(batch.record(forwards_[begin].record).key) ? 1 : 0;
    if (head.forwarded != 0) {
      broke(Status::error(Code::kInternal, fmt::format("key {} was forwarded to a node that does not own it",
                                                       batch.record(forwards_[begin].record).key)));
      return;
    }
    BatchWriter writer(mail_, service(node), forwarded, row_bytes_, end - begin);
    for (; begin < end; ++begin) {
      const std::size_t i = forwards_[begin].record;
      const Record record = batch.record(i);
      std::byte* const row = writer.add(record.key, record.position);
      if (!pulls) std::memcpy(row, batch.row(i), row_bytes_);
    }
  }
}

void Service::on_localize(const Batch& batch) {
  const BatchHead& head = batch.head();
  BatchWriter answers(mail_, head.requester, {.kind = MailKind::kDone, .request = head.request}, row_bytes_,
                      batch.size());
  std::vector<Key> moves;
  for (std::size_t i = 0; i < batch.size() && failure_.ok(); ++i) {
    const Record record = batch.record(i);
    const auto coming = coming_.find(record.key);
    const bool waits = coming != coming_.end() && !coming->second.back().next_owner;
    // A row that is here, and will stay, is local already.
    if (!waits &&
        (store_.with(record.key, [](std::byte*) {}) == Found::kHere || make_first_row(record.key))) {
      answers.add(record.key, record.position);
      continue;
    }
    auto& tenures = coming_[record.key];
    if (!waits) {
      tenures.emplace_back();
      moves.push_back(record.key);
    }
    // A second localize joins the first.
    tenures.back().localizes.push_back({.head = head, .position = record.position, .row = {}});
  }
  // "Coming" is marked before the home hears of it, this node's own home included.
  std::stable_sort(moves.begin(), moves.end(),
                   [&](Key a, Key b) { return options_.places.home_of(a) < options_.places.home_of(b); });
  for (std::size_t begin = 0; begin < moves.size();) {
    const std::int32_t home = options_.places.home_of(moves[begin]);
    std::size_t end = begin;
    while (end < moves.size() && options_.places.home_of(moves[end]) == home) ++end;
    if (home == options_.node) {
      for (; begin < end; ++begin) move(moves[begin], options_.node);
      continue;
    }
    BatchWriter writer(mail_, service(home), {.kind = MailKind::kMove, .requester = service(options_.node)},
                       row_bytes_, end - begin);
    for (; begin < end; ++begin) writer.add(moves[begin], 0);
  }
}

void Service::on_move(const Batch& batch) {
  const std::int32_t to = options_.places.node_of[static_cast<std::size_t>(batch.head().requester)];
  for (std::size_t i = 0; i < batch.size() && failure_.ok(); ++i) {
    const Key key = batch.record(i).key;
    if (!is_home(key))
      return broke(Status::error(Code::kInternal, fmt::format("key {} has another home", key)));
    move(key, to);
  }
}

/// At the home: names the next owner at once, and tells the last one.
void Service::move(Key key, std::int32_t to) {
  const auto known = owner_.find(key);
  const std::int32_t owner = known == owner_.end() ? options_.node : known->second;
  if (owner == to)
    return broke(
        Status::error(Code::kInternal, fmt::format("node {} asked for key {}, which it owns", to, key)));
  if (owner == options_.node) {
    // Made first, because a moved key is made nowhere.
    if (!coming_.contains(key) && store_.with(key, [](std::byte*) {}) == Found::kAbsent)
      (void)make_first_row(key);
  }
  if (to == options_.node) {
    owner_.erase(key);
  } else {
    owner_[key] = to;
  }
  if (owner == options_.node) return hand_over(key, to);
  BatchWriter writer(mail_, service(owner), {.kind = MailKind::kHandOver, .requester = service(to)},
                     row_bytes_, 1);
  writer.add(key, 0);
}

void Service::on_hand_over(const Batch& batch) {
  const std::int32_t to = options_.places.node_of[static_cast<std::size_t>(batch.head().requester)];
  for (std::size_t i = 0; i < batch.size() && failure_.ok(); ++i) hand_over(batch.record(i).key, to);
}

/// At the owner: the row leaves now, or when it has arrived and its requests are served.
void Service::hand_over(Key key, std::int32_t to) {
  if (const auto coming = coming_.find(key); coming != coming_.end()) {
    // The newest time of ownership that the home knows of ends; one that begins later is still open.
    for (Tenure& tenure : coming->second)
      if (!tenure.next_owner) {
        tenure.next_owner = to;
        return;
      }
  }
  switch (store_.take(key, row_.data())) {
    case Found::kHere:
      return transfer(key, to, row_.data());
    case Found::kAbsent:
      return broke(
          Status::error(Code::kInternal, fmt::format("key {} is to leave a node that does not own it", key)));
    case Found::kLatchLost:
      return broke(Status::error(Code::kPeerLost, "a rank ended while it used a row of the table"));
  }
}

void Service::transfer(Key key, std::int32_t to, const std::byte* row) {
  BatchWriter writer(mail_, service(to), {.kind = MailKind::kTransfer}, row_bytes_, 1);
  std::memcpy(writer.add(key, 0), row, row_bytes_);
}

void Service::on_transfer(const Batch& batch) {
  for (std::size_t i = 0; i < batch.size() && failure_.ok(); ++i) {
    const Key key = batch.record(i).key;
    const auto coming = coming_.find(key);
    if (coming == coming_.end())
      return broke(Status::error(Code::kInternal,
                                 fmt::format("key {} arrived at a node that does not wait for it", key)));
    Tenure tenure = std::move(coming->second.front());
    coming->second.pop_front();
    if (coming->second.empty()) coming_.erase(coming);
    std::memcpy(row_.data(), batch.row(i), row_bytes_);
    for (const Waiting& request : tenure.requests) {
      if (request.head.kind != MailKind::kPull) change(request.head.kind, row_.data(), request.row.data());
      answer(request, key);
    }
    if (tenure.next_owner) {
      transfer(key, *tenure.next_owner, row_.data());
    } else {
      broke(store_.insert(key, row_.data()));
    }
    // "Was here, and its requests are served."
    for (const Waiting& localize : tenure.localizes) answer(localize, key);
  }
}

/// Answers one record that has waited; `row_` is the key's row.
void Service::answer(const Waiting& request, Key key) {
  const bool pulls = request.head.kind == MailKind::kPull;
  BatchWriter writer(mail_, request.head.requester,
                     {.kind = pulls ? MailKind::kRows : MailKind::kDone, .request = request.head.request},
                     row_bytes_, 1);
  std::byte* const out = writer.add(key, request.position);
  if (pulls) std::memcpy(out, row_.data(), row_bytes_);
}

void Service::broke(Status status) {
  if (failure_.ok()) failure_ = std::move(status);
}

}  // namespace hips::ps
