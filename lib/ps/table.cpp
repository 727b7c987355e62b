#include "lib/ps/table.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "lib/comm/setup/bootstrap.hpp"
#include "lib/ps/mail_setup.hpp"
#include "lib/ps/table_setup.hpp"

namespace hips::ps {
namespace {

/// Records of a rank that may be outstanding; a rank that asks faster than others answer waits.
constexpr std::uint64_t kMostOutstanding = 1U << 16U;
constexpr std::uint32_t kStartsPerLook = 64;

}  // namespace

RowTable::RowTable(comm::Communicator& members, RowTableOptions options)
    : members_(members), options_(std::move(options)), driver_(members, "table") {}

Result<std::unique_ptr<RowTable>> RowTable::create(comm::Communicator& members, RowTableOptions options) {
  std::unique_ptr<RowTable> table(new RowTable(members, std::move(options)));
  if (Status status = table->set_up(); !status.ok()) return fail(std::move(status));
  return table;
}

Status RowTable::set_up() {
  Status status =
      set_up_together(members_, [this](comm::SetUpExchanges& exchanges) { return set_up(exchanges); });
  return status.ok() ? driver_.greet() : status;
}

Status RowTable::set_up(comm::SetUpExchanges& exchanges) {
  auto parts =
      set_up_table(members_, exchanges, options_,
                   [this](Rank from, std::span<const std::byte> batches) { return receive(from, batches); });
  if (!parts) return parts.error();
  places_ = std::move(parts->places);
  id_ = parts->id;
  store_ = std::move(parts->store);
  replicas_ = std::move(parts->replicas);
  return exchanges.agree(begin_to_serve(std::move(parts->mail), parts->spin));
}

/// Local; afterwards this rank can call and be called.
Status RowTable::begin_to_serve(std::unique_ptr<TransportMail> mail, SpinLimits spin) {
  const auto given_up = [this] { return !members_.failure().ok(); };
  store_->set_given_up(given_up);
  if (replicas_) replicas_->set_given_up(given_up);
  const Rank rank = members_.rank();
  const bool serves = places_.serves(rank);
  client_ = std::make_unique<Client>(rank, places_, options_.type, *store_, *mail, replicas_.get());
  if (serves)
    service_ =
        std::make_unique<Service>(Service::Options{.node = places_.node_of[static_cast<std::size_t>(rank)],
                                                   .places = places_,
                                                   .type = options_.type,
                                                   .first_row = options_.first_row},
                                  *store_, *mail, replicas_.get());
  return driver_.start(std::move(mail), spin, serves);
}

/// Uses each key's row. False: the table has failed.
template <typename Use>
bool RowTable::use_local(std::span<const Key> keys, Use&& use) {
  Found found = Found::kHere;
  if (keys.size() == 1) {
    found = use(0, store_->place_of(keys.front()));
  } else {
    // Rows of a block come to the cache at the same time.
    constexpr std::size_t kBlock = 16;
    std::array<RowStore::Place, kBlock> places;
    for (std::size_t begin = 0; begin < keys.size() && found != Found::kLatchLost; begin += kBlock) {
      const std::size_t num = std::min(kBlock, keys.size() - begin);
      for (std::size_t i = 0; i < num; ++i) store_->expect(keys[begin + i], places[i]);
      for (std::size_t i = 0; i < num; ++i) store_->look(keys[begin + i], places[i]);
      for (std::size_t i = 0; i < num && found != Found::kLatchLost; ++i) found = use(begin + i, places[i]);
    }
  }
  if (found == Found::kLatchLost) (void)driver_.look_for_failure();
  return found != Found::kLatchLost;
}

/// The same; lists the keys whose rows are not here, by their positions.
bool RowTable::use_local(MailKind kind, std::span<const Key> keys, const std::byte* given, std::byte* out,
                         std::vector<std::uint32_t>& absent) {
  const std::size_t row_bytes = client_->row_bytes();
  const auto note = [&](Found found, std::size_t i) {
    if (found == Found::kAbsent) absent.push_back(static_cast<std::uint32_t>(i));
    return found;
  };
  switch (kind) {
    case MailKind::kPull:
      return use_local(
          keys, [&](std::size_t i, const RowStore::Place& place) __attribute__((always_inline)) {
            return note(client_->pull(keys[i], place, out + i * row_bytes), i);
          });
    case MailKind::kPush:
      return use_local(
          keys, [&](std::size_t i, const RowStore::Place& place) __attribute__((always_inline)) {
            return note(client_->push(keys[i], place, given + i * row_bytes), i);
          });
    case MailKind::kSet:
      return use_local(keys, [&](std::size_t i, const RowStore::Place& place) {
        return note(client_->set(keys[i], place, given + i * row_bytes), i);
      });
    default:
      return use_local(keys, [&](std::size_t i, const RowStore::Place& place) {
        return note(client_->look(keys[i], place), i);
      });
  }
}

bool RowTable::may_begin(std::span<const Key> keys) {
  // A rank whose rows are all here sends nothing, and hears of a failure from nobody else.
  const std::uint32_t starts = num_starts_.load(std::memory_order_relaxed) + 1;
  num_starts_.store(starts, std::memory_order_relaxed);
  if (starts % kStartsPerLook == 0) (void)driver_.look_for_failure();
  if (driver_.failed()) return false;
  bool all_exist = true;
  for (const Key key : keys) all_exist &= key < options_.num_keys;
  return all_exist;
}

/// may_begin() was false.
Status RowTable::why_not(std::span<const Key> keys) {
  if (driver_.failed()) return failure();
  const auto wrong =
      std::find_if(keys.begin(), keys.end(), [&](Key key) { return key >= options_.num_keys; });
  const std::string named = wrong != keys.end() ? std::to_string(*wrong) : "that changed during the call";
  return Status::error(Code::kInvalidArgument,
                       fmt::format("table: key {} is out of range [0, {})", named, options_.num_keys));
}

Status RowTable::start(std::unique_ptr<TableCall>& call, MailKind kind, std::span<const Key> keys,
                       const std::byte* given, std::byte* out) {
  std::vector<std::uint32_t> remote;
  Status status = use(kind, keys, given, out, remote);
  return remote.empty() ? status : ask(call, kind, keys, given, out, remote);
}

Status RowTable::use(MailKind kind, std::span<const Key> keys, const std::byte* given, std::byte* out,
                     std::vector<std::uint32_t>& remote) {
  Status status;
  try {
    if (!may_begin(keys)) {
      status = why_not(keys);
    } else if (!use_local(kind, keys, given, out, remote)) {
      remote.clear();
      status = failure();
    }
  } catch (const std::bad_alloc&) {
    // Rows that are here have been used: the call must not be repeated.
    remote.clear();
    driver_.fail_for_want_of_memory();
    status = failure();
  }
  return status;
}

Status RowTable::ask(std::unique_ptr<TableCall>& call, MailKind kind, std::span<const Key> keys,
                     const std::byte* given, std::byte* out, std::span<const std::uint32_t> remote) {
  try {
    auto made = std::make_unique<TableCall>();
    made->kind = kind;
    made->out = out;
    made->num_keys = keys.size();
    const auto has_room = [&] {
      return client_->num_outstanding() + client_->num_moving() <= kMostOutstanding;
    };
    if (!has_room()) driver_.wait_until(has_room, "answers to earlier calls");
    Status status = driver_.send([&] { client_->ask(*made, keys, remote, given); });
    if (status.ok()) call = std::move(made);
    return status;
  } catch (const std::bad_alloc&) {
    driver_.fail_for_want_of_memory();
    return failure();
  }
}

Status RowTable::pull_if_local(std::span<const Key> keys, std::byte* out, unsigned char* here) {
  if (!may_begin(keys)) return why_not(keys);
  if (driver_.mail().has_unsent()) (void)driver_.step();
  std::vector<std::uint32_t> absent;
  const bool used = use_local(MailKind::kPull, keys, nullptr, out, absent);
  std::fill_n(here, keys.size(), static_cast<unsigned char>(1));
  for (const std::uint32_t i : absent) here[i] = 0;
  // A program that asks until a row has come must not keep the service from its core.
  if (!absent.empty()) (void)driver_.step();
  return used ? Status::success() : failure();
}

/// A frame's batches, to the service of the node or to this rank's calls.
Status RowTable::receive(Rank from, std::span<const std::byte> batches) {
  const std::size_t row_bytes = options_.type.bytes();
  while (!batches.empty()) {
    const auto batch = Batch::take(batches, row_bytes);
    if (!batch) return batch.error();
    const bool answers = is_answer(batch->head().kind);
    if (!answers && !service_)
      return Status::error(Code::kInternal, "table: a request reached a rank that does not serve",
                           Scope::kCommunicator);
    if (Status status = answers ? client_->on_mail(from, *batch) : service_->on_mail(*batch); !status.ok())
      return status;
  }
  return Status::success();
}

bool RowTable::test(const TableCall& call) {
  if (call.done.load(std::memory_order_acquire)) return true;
  driver_.step_with_others();
  return call.done.load(std::memory_order_acquire) || driver_.failed();
}

Status RowTable::wait(std::unique_ptr<TableCall> call) {
  const auto is_done = [&] { return call->done.load(std::memory_order_acquire); };
  driver_.wait_until(is_done, "the rows of a call");
  if (is_done()) return Status::success();
  // The client still knows of it; nothing is written to the caller's memory any more.
  Status status = failure();
  call->out = nullptr;
  const std::lock_guard lock(mutex_);
  unanswered_.push_back(std::move(call));
  return status;
}

Status RowTable::intent(std::span<const Key> keys, std::uint64_t start, std::uint64_t end) {
  if (!may_begin(keys)) return why_not(keys);
  if (end < start)
    return Status::error(
        Code::kInvalidArgument,
        fmt::format("table: an intent ends at clock {}, before it starts at {}", end, start));
  return driver_.send([&] { client_->tell_intent(keys, start, end); });
}

Status RowTable::advance_clock() {
  if (driver_.failed()) return failure();
  // What this rank has pushed is there before the others hear of the clock.
  const auto is_quiet = [&] { return client_->num_outstanding() == 0; };
  driver_.wait_until(is_quiet, "the outstanding calls before a clock");
  if (!is_quiet()) return failure();
  if (Status status = driver_.send([&] { client_->tell_clock(++clock_); }); !status.ok()) return status;
  // Others may wait for this clock while this rank makes no call, so it has to be on its way.
  (void)driver_.step();
  const auto is_near = [&] {
    const std::uint64_t all = client_->all_clocks();
    return (all >= clock_ || clock_ - all <= options_.staleness) && !driver_.mail().has_unsent();
  };
  driver_.wait_until(is_near, "the clocks of slower ranks");
  return is_near() ? Status::success() : failure();
}

}  // namespace hips::ps
