#include "lib/ps/service.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace hips::ps {

/// Writes answers, those of one request that follow each other in one batch.
class Service::Answers {
 public:
  Answers(Mail& mail, std::size_t row_bytes, std::size_t expected)
      : mail_(mail), row_bytes_(row_bytes), expected_(expected) {}

  /// Returns the place of the row, for a pull.
  std::byte* add(const BatchHead& request, Key key, std::uint32_t position) {
    const bool same = writer_ && requester_ == request.requester && request_ == request.request;
    if (!same) {
      writer_.reset();
      requester_ = request.requester;
      request_ = request.request;
      const MailKind kind = request.kind == MailKind::kPull ? MailKind::kRows : MailKind::kDone;
      writer_.emplace(mail_, requester_, BatchHead{.kind = kind, .request = request_}, row_bytes_, expected_);
    }
    if (expected_ > 1) --expected_;
    return writer_->add(key, position);
  }
  /// Before something else is written to the same rank.
  void close() { writer_.reset(); }

 private:
  Mail& mail_;
  std::size_t row_bytes_, expected_;
  std::optional<BatchWriter> writer_;
  Rank requester_ = -1;
  std::uint32_t request_ = 0;
};

Service::Service(Options options, RowStore& store, Mail& mail, ReplicaStore* replicas)
    : options_(std::move(options)),
      store_(store),
      mail_(mail),
      row_bytes_(options_.type.bytes()),
      intents_(options_.places.node_of.size()),
      row_(row_bytes_) {
  if (options_.first_row.empty()) options_.first_row.resize(row_bytes_);
  if (replicas != nullptr)
    replicas_ = std::make_unique<Replicas>(service(options_.node), *replicas, mail_, row_bytes_);
  clocks_.resize(options_.places.node_of.size());
  node_clocks_.resize(options_.places.service_of.size());
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
    case MailKind::kWant:
    case MailKind::kWantMove:
    case MailKind::kUnwant:
      on_told(batch);
      break;
    case MailKind::kHandOver:
      on_hand_over(batch);
      break;
    case MailKind::kTransfer:
      on_transfer(batch);
      break;
    case MailKind::kClock:
    case MailKind::kNodeClock:
      on_clock(batch);
      break;
    case MailKind::kIntent:
      on_intent(batch);
      break;
    case MailKind::kStays:
      stay(keys_of(batch));
      break;
    case MailKind::kAlone:
      on_alone(batch);
      break;
    case MailKind::kReplicate:
    case MailKind::kReplica:
    case MailKind::kFlush:
    case MailKind::kRefresh:
    case MailKind::kValue:
    case MailKind::kKnown:
    case MailKind::kDrop:
    case MailKind::kDropped:
    case MailKind::kRecall:
    case MailKind::kRelayedRows:
    case MailKind::kRelayedDone:
      on_mail_of_replicas(batch);
      break;
    case MailKind::kRows:
    case MailKind::kDone:
    case MailKind::kAllClocks:
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
  if (!is_unused(key)) return false;
  broke(store_.insert(key, options_.first_row.data()));
  return failure_.ok();
}

void Service::on_access(const Batch& batch) {
  const BatchHead& head = batch.head();
  const bool pulls = head.kind == MailKind::kPull;
  forwards_.clear();
  std::vector<std::size_t> relayed;
  {
    BatchWriter answers(mail_, head.requester,
                        {.kind = pulls ? MailKind::kRows : MailKind::kDone, .request = head.request},
                        row_bytes_, batch.size());
    find_places(batch.size(), [&](std::size_t i) { return batch.record(i).key; });
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
      if (needs_relay(head, record.key)) {
        relayed.push_back(i);
        continue;
      }
      Found found = store_.with(record.key, places_[i], use);
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
          const bool is_here = home == options_.node;
          forwards_.push_back({is_here ? owner_.at(record.key) : home, i, is_here});
          continue;
        }
      }
      if (found == Found::kLatchLost) broke(latch_lost());
    }
  }
  if (!relayed.empty()) access_replicated(batch, relayed);
  if (!forwards_.empty() && head.forwarded != 0)
    return broke(
        Status::error(Code::kInternal, fmt::format("key {} was forwarded to a node that does not own it",
                                                   batch.record(forwards_.front().record).key)));
  // What was not here goes to the owner, or to the home where this node owns the key no more.
  for_each_node([&](std::int32_t node, std::size_t begin, std::size_t end) {
    BatchHead forwarded = head;
    forwarded.count = 0;
    forwarded.forwarded = forwards_[begin].by_home ? 1 : 0;
    BatchWriter writer(mail_, service(node), forwarded, row_bytes_, end - begin);
    for (; begin < end; ++begin) {
      const std::size_t i = forwards_[begin].record;
      const Record record = batch.record(i);
      std::byte* const row = writer.add(record.key, record.position);
      if (!pulls) std::memcpy(row, batch.row(i), row_bytes_);
    }
  });
  finish_moves();
}

template <typename Write>
void Service::for_each_node(Write&& write) {
  const auto by_group = [](const Forward& a, const Forward& b) { return a.group() < b.group(); };
  if (!std::is_sorted(forwards_.begin(), forwards_.end(), by_group))
    std::stable_sort(forwards_.begin(), forwards_.end(), by_group);
  for (std::size_t begin = 0, end = 0; begin < forwards_.size(); begin = end) {
    while (end < forwards_.size() && forwards_[end].group() == forwards_[begin].group()) ++end;
    write(forwards_[begin].node, begin, end);
  }
}

void Service::on_localize(const Batch& batch) {
  const BatchHead& head = batch.head();
  keys_.clear();
  {
    Answers answers(mail_, row_bytes_, batch.size());
    find_places(batch.size(), [&](std::size_t i) { return batch.record(i).key; });
    for (std::size_t i = 0; i < batch.size() && failure_.ok(); ++i) {
      const Record record = batch.record(i);
      // A row that is here is local already, and nobody waits for it.
      const Found found = store_.contains(record.key, places_[i]);
      if (found == Found::kLatchLost) broke(latch_lost());
      if (found == Found::kHere) {
        answers.add(head, record.key, record.position);
        continue;
      }
      const auto [coming, is_first] = coming_.try_emplace(record.key);
      if (is_first && make_first_row(record.key)) {
        coming_.erase(coming);
        answers.add(head, record.key, record.position);
        continue;
      }
      Tenures& tenures = coming->second;
      // A second localize joins the first, unless the row leaves after that.
      if (tenures.empty() || tenures.back().next_owner) {
        tenures.emplace_back();
        keys_.push_back(record.key);
      }
      tenures.back().localizes.push_back(
          {.requester = head.requester, .request = head.request, .position = record.position});
    }
  }
  // "Coming" is marked before the home hears of it, this node's own home included.
  tell_homes(MailKind::kMove, keys_);
}

/// Tells the homes of keys something of this node.
void Service::tell_homes(MailKind kind, std::span<const Key> keys) {
  forwards_.clear();
  std::vector<Key> own;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (is_home(keys[i])) {
      own.push_back(keys[i]);
    } else {
      forwards_.push_back({options_.places.home_of(keys[i]), i});
    }
  }
  for_each_node([&](std::int32_t node, std::size_t begin, std::size_t end) {
    BatchWriter writer(mail_, service(node), {.kind = kind, .requester = service(options_.node)}, row_bytes_,
                       end - begin);
    for (; begin < end; ++begin) writer.add(keys[forwards_[begin].record], 0);
  });
  if (!own.empty()) told(kind, options_.node, own);
}

void Service::on_told(const Batch& batch) {
  const std::vector<Key> keys = keys_of(batch);
  for (const Key key : keys) {
    if (!is_home(key))
      return broke(Status::error(Code::kInternal, fmt::format("key {} has another home", key)));
  }
  told(batch.head().kind, node_of(batch.head().requester), keys);
}

/// At the home of the keys.
void Service::told(MailKind kind, std::int32_t node, std::span<const Key> keys) {
  switch (kind) {
    case MailKind::kMove:
      return move(keys, node);
    case MailKind::kUnwant:
      return unwanted_by(node, keys);
    default:
      return wanted_by(node, keys, kind == MailKind::kWantMove);
  }
}

/// At the home: names the next owner at once, and tells the last one.
void Service::move(std::span<const Key> keys, std::int32_t to) {
  forwards_.clear();
  {
    BatchWriter transfers(mail_, service(to), {.kind = MailKind::kTransfer}, row_bytes_, keys.size());
    find_places(keys.size(), [&](std::size_t i) { return keys[i]; });
    for (std::size_t i = 0; i < keys.size() && failure_.ok(); ++i) {
      const Key key = keys[i];
      const auto known = owner_.find(key);
      const std::int32_t owner = known == owner_.end() ? options_.node : known->second;
      if (owner == to)
        return broke(
            Status::error(Code::kInternal, fmt::format("node {} asked for key {}, which it owns", to, key)));
      if (owner == options_.node) {
        hand_over(key, to, transfers);
      } else {
        forwards_.push_back({owner, i});
      }
      if (to == options_.node) {
        owner_.erase(known);
      } else if (known != owner_.end()) {
        known->second = to;
      } else {
        owner_.emplace(key, to);
      }
    }
  }
  for_each_node([&](std::int32_t node, std::size_t begin, std::size_t end) {
    BatchWriter writer(mail_, service(node), {.kind = MailKind::kHandOver, .requester = service(to)},
                       row_bytes_, end - begin);
    for (; begin < end; ++begin) writer.add(keys[forwards_[begin].record], 0);
  });
  finish_moves();
}

void Service::on_hand_over(const Batch& batch) {
  const std::int32_t to = options_.places.node_of[static_cast<std::size_t>(batch.head().requester)];
  {
    BatchWriter transfers(mail_, service(to), {.kind = MailKind::kTransfer}, row_bytes_, batch.size());
    find_places(batch.size(), [&](std::size_t i) { return batch.record(i).key; });
    for (std::size_t i = 0; i < batch.size() && failure_.ok(); ++i)
      hand_over(batch.record(i).key, to, transfers);
  }
  finish_moves();
}

/// At the owner: the row leaves now, or when it has arrived and its requests are served.
void Service::hand_over(Key key, std::int32_t to, BatchWriter& transfers) {
  if (replicated_.contains(key)) recall(key);
  Found found = store_.take(key, row_.data());
  if (found == Found::kAbsent) {
    if (const auto coming = coming_.find(key); coming == coming_.end()) {
      // It leaves before its first use, and takes no room here.
      if (is_unused(key)) {
        std::memcpy(row_.data(), options_.first_row.data(), row_bytes_);
        found = Found::kHere;
      }
    } else if (Tenure& last = coming->second.back(); !last.next_owner) {
      // The newest time of ownership that the home knows of ends.
      last.next_owner = to;
      return;
    }
  }
  switch (found) {
    case Found::kHere:
      std::memcpy(transfers.add(key, 0), row_.data(), row_bytes_);
      if (replicas_ && intents_.wants(key)) lost_.push_back(key);
      return;
    case Found::kAbsent:
      return broke(
          Status::error(Code::kInternal, fmt::format("key {} is to leave a node that does not own it", key)));
    case Found::kLatchLost:
      return broke(latch_lost());
  }
}

void Service::on_transfer(const Batch& batch) {
  {
    Answers answers(mail_, row_bytes_, batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) store_.prefetch(batch.record(i).key);
    for (std::size_t i = 0; i < batch.size() && failure_.ok(); ++i)
      arrive(batch.record(i).key, batch.row(i), answers);
  }
  finish_moves();
}

/// Rows that were taken out of use while nodes had replicas of them.
void Service::on_recalled(std::span<const Key> keys) {
  Answers answers(mail_, row_bytes_, keys.size());
  for (const Key key : keys) {
    const auto recalled = recalls_.extract(key);
    arrive(key, recalled.mapped().row.data(), answers);
  }
}

/// The row that is waited for is here: what waits is served, then it stays, or leaves again.
void Service::arrive(Key key, const std::byte* row, Answers& answers) {
  const auto coming = coming_.find(key);
  if (coming == coming_.end())
    return broke(Status::error(Code::kInternal,
                               fmt::format("key {} arrived at a node that does not wait for it", key)));
  const Tenure tenure = std::move(coming->second.front());
  coming->second.erase(coming->second.begin());
  if (coming->second.empty()) coming_.erase(coming);
  std::memcpy(row_.data(), row, row_bytes_);
  for (const Waiting& request : tenure.requests) {
    const bool pulls = request.head.kind == MailKind::kPull;
    if (!pulls) change(request.head.kind, row_.data(), request.row.data());
    std::byte* const out = answers.add(request.head, key, request.position);
    if (pulls) std::memcpy(out, row_.data(), row_bytes_);
  }
  if (!tenure.next_owner)
    if (Status inserted = store_.insert(key, row_.data()); !inserted.ok()) {
      recalls_[key].row = row_;  // for recover()
      broke(std::move(inserted));
    }
  // "Was here, and its requests are served."
  for (const Localize& localize : tenure.localizes)
    answers.add({.kind = MailKind::kLocalize, .request = localize.request, .requester = localize.requester},
                key, localize.position);
  for (const std::int32_t node : tenure.replicates)
    (tenure.next_owner ? to_refuse_ : to_replicate_).emplace_back(node, key);
  if (!tenure.next_owner) return;
  if (replicas_ && intents_.wants(key) && !is_coming(key)) lost_.push_back(key);
  answers.close();
  BatchWriter writer(mail_, service(*tenure.next_owner), {.kind = MailKind::kTransfer}, row_bytes_, 1);
  std::memcpy(writer.add(key, 0), row_.data(), row_bytes_);
}

void Service::on_clock(const Batch& batch) {
  const auto rank = static_cast<std::size_t>(batch.head().requester);
  const std::uint64_t clock = batch.record(0).key;
  if (batch.head().kind == MailKind::kNodeClock) {
    node_clocks_[static_cast<std::size_t>(options_.places.node_of[rank])] = clock;
    return compare_clocks();
  }
  clocks_[rank] = clock;
  intents_.advance(rank, clock);
  act_on_intents();
  std::uint64_t least = UINT64_MAX;
  for (std::size_t r = 0; r < clocks_.size(); ++r)
    if (options_.places.node_of[r] == options_.node) least = std::min(least, clocks_[r]);
  if (least == least_clock_) return;
  least_clock_ = least;
  when_answered(MailKind::kNodeClock, least);
}

void Service::compare_clocks() {
  const std::uint64_t all = *std::min_element(node_clocks_.begin(), node_clocks_.end());
  if (all == all_clocks_) return;
  all_clocks_ = all;
  when_answered(MailKind::kAllClocks, all);
}

void Service::on_answered(MailKind kind, std::uint64_t clock) {
  if (kind == MailKind::kAllClocks) {
    for (std::size_t r = 0; r < clocks_.size(); ++r)
      if (options_.places.node_of[r] == options_.node)
        tell_clock(static_cast<Rank>(r), MailKind::kAllClocks, clock);
    return;
  }
  node_clocks_[static_cast<std::size_t>(options_.node)] = clock;
  for (const Rank other : options_.places.service_of)
    if (other != service(options_.node)) tell_clock(other, MailKind::kNodeClock, clock);
  compare_clocks();
}

void Service::tell_clock(Rank to, MailKind kind, std::uint64_t clock) {
  BatchWriter writer(mail_, to, {.kind = kind, .requester = service(options_.node)}, row_bytes_, 1);
  writer.add(clock, 0);
}

void Service::broke(Status status) {
  if (!failure_.ok()) return;
  if (status.code == Code::kOutOfMemory)
    status.message = fmt::format("table: the node of rank {}: {}", service(options_.node), status.message);
  failure_ = std::move(status);
}

}  // namespace hips::ps
