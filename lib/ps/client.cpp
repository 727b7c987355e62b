#include "lib/ps/client.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace hips::ps {
namespace {

std::uint64_t bit_of(std::uint32_t position) {
  return std::uint64_t{1} << position % 64;
}

}  // namespace

Client::Client(Rank rank, RankPlaces places, RowType type, RowStore& store, Mail& mail,
               const ReplicaStore* replicas)
    : rank_(rank),
      places_(std::move(places)),
      type_(type),
      row_bytes_(type.bytes()),
      store_(store),
      mail_(mail),
      replicas_(replicas) {}

Found Client::set(Key key, const RowStore::Place& place, const std::byte* given) const {
  if (routes_.may_be_outstanding(place.hash())) return Found::kAbsent;
  bool may_have_replicas = false;
  const Found found = store_.with(key, place, [&](std::byte* row) {
    // Replicas of a row that is set are taken back first. Read under the latch, under which rows are copied to others.
    may_have_replicas = store_.mark() != 0;
    if (!may_have_replicas) std::memcpy(row, given, row_bytes_);
  });
  return may_have_replicas ? Found::kAbsent : found;
}

Found Client::look(Key key, const RowStore::Place& place) const {
  return routes_.may_be_outstanding(place.hash()) ? Found::kAbsent : store_.contains(key, place);
}

/// Gives the service that gets the request.
Rank Client::begin_request(Key key) {
  const std::int32_t node = routes_.begin(key, mixed(key));
  return node == RequestRoutes::kToHome ? places_.home_service(key)
                                        : places_.service_of[static_cast<std::size_t>(node)];
}

void Client::end_request(Key key, Rank from) {
  const std::int32_t node = places_.node_of[static_cast<std::size_t>(from)];
  // What comes from this rank's own node may be passed on by its service, and does not tell the owner.
  const bool is_owner = from != own_service();
  routes_.end(key, mixed(key), is_owner && node != places_.home_of(key) ? node : RequestRoutes::kToHome);
}

void Client::ask(TableCall& call, std::span<const Key> keys, std::span<const std::uint32_t> positions,
                 const std::byte* given) {
  const bool moves = call.kind == MailKind::kLocalize;
  call.num_missing = positions.size();
  call.done.store(false, std::memory_order_relaxed);
  call.number = ++last_number_;
  calls_[call.number] = &call;
  order_.clear();
  if (moves) num_moving_.fetch_add(positions.size(), std::memory_order_relaxed);
  call.missing.assign((call.num_keys + 63) / 64, 0);
  for (const std::uint32_t at : positions) {
    call.missing[at / 64] |= bit_of(at);
    order_.emplace_back(moves ? own_service() : begin_request(keys[at]), at);
  }
  if (order_.size() > 1)
    std::stable_sort(order_.begin(), order_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t begin = 0; begin < order_.size();) {
    const Rank to = order_[begin].first;
    std::size_t end = begin;
    while (end < order_.size() && order_[end].first == to) ++end;
    BatchWriter writer(mail_, to, {.kind = call.kind, .request = call.number, .requester = rank_}, row_bytes_,
                       end - begin);
    for (; begin < end; ++begin) {
      const std::uint32_t at = order_[begin].second;
      std::byte* const row = writer.add(keys[at], at);
      if (has_rows(call.kind)) std::memcpy(row, given + at * row_bytes_, row_bytes_);
    }
  }
}

void Client::tell_intent(std::span<const Key> keys, std::uint64_t start, std::uint64_t end) {
  if (end <= clock_ || end <= start) return;
  // The service knows this rank's clock: it hears of both in their order.
  const auto from_now = [&](std::uint64_t clock) {
    return static_cast<std::uint32_t>(clock <= clock_ ? 0
                                                      : std::min<std::uint64_t>(clock - clock_, UINT32_MAX));
  };
  BatchWriter writer(mail_, own_service(), {.kind = MailKind::kIntent, .requester = rank_}, row_bytes_,
                     keys.size());
  for (const Key key : keys) writer.add(key, from_now(start), from_now(end));
}

void Client::tell_clock(std::uint64_t clock) {
  clock_ = clock;
  BatchWriter writer(mail_, own_service(), {.kind = MailKind::kClock, .requester = rank_}, row_bytes_, 1);
  writer.add(clock, 0);
}

Status Client::on_mail(Rank from, const Batch& batch) {
  const BatchHead& head = batch.head();
  if (head.kind == MailKind::kAllClocks) {
    all_clocks_.store(batch.record(0).key, std::memory_order_release);
    return Status::success();
  }
  const auto known = calls_.find(head.request);
  if (known == calls_.end())
    return Status::error(
        Code::kMismatch,
        fmt::format("an answer came to call {} of the table, which is not outstanding", head.request),
        Scope::kCommunicator);
  TableCall& call = *known->second;
  const bool rows = head.kind == MailKind::kRows;
  if (rows != (call.kind == MailKind::kPull) || batch.size() > call.num_missing)
    return Status::error(
        Code::kMismatch,
        fmt::format("call {} of the table waits for {} answers, and got {} of another kind or too many",
                    head.request, call.num_missing, batch.size()),
        Scope::kCommunicator);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Record record = batch.record(i);
    if (record.position >= call.num_keys ||
        (call.missing[record.position / 64] & bit_of(record.position)) == 0)
      return Status::error(Code::kMismatch,
                           fmt::format("an answer names key {} of call {}, which has {} and waits for {}",
                                       record.position, head.request, call.num_keys, call.num_missing - i),
                           Scope::kCommunicator);
    call.missing[record.position / 64] &= ~bit_of(record.position);
    if (rows && call.out != nullptr)
      std::memcpy(call.out + record.position * row_bytes_, batch.row(i), row_bytes_);
    if (call.kind != MailKind::kLocalize) end_request(record.key, from);
  }
  if (call.kind == MailKind::kLocalize) num_moving_.fetch_sub(batch.size(), std::memory_order_relaxed);
  call.num_missing -= batch.size();
  if (call.num_missing > 0) return Status::success();
  calls_.erase(known);
  call.done.store(true, std::memory_order_release);
  return Status::success();
}

}  // namespace hips::ps
