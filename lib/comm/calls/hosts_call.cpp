#include "lib/comm/calls/hosts_call.hpp"

#include <algorithm>
#include <utility>

#include "lib/comm/calls/hosts_calls.hpp"
#include "lib/reduce/reduce.hpp"

namespace hips::comm {
namespace {

/// Up to this size, for each other rank of the host, sending the vector for every rank costs less than
/// another step in memory.
constexpr std::uint64_t kShortBytes = 32U << 10U;
/// Shares of less are not worth an operation, however little staging there is.
constexpr std::uint64_t kLeastShareBytes = 64U << 10U;

}  // namespace

HostsCall::Way HostsCall::way_of(const CallArgs& args) const {
  if (args.collective != Collective::kAllreduce || is_ordered(args.op)) return Way::kPlan;
  const std::uint64_t bytes = args.count * size_of(args.type);
  if (!parts_.team.plans.is_automatic(bytes)) return Way::kPlan;
  if (bytes * static_cast<std::uint64_t>(parts_.hosts.per_host - 1) <= kShortBytes) return Way::kShort;
  return parts_.node.layout().holds(size_of(args.type), parts_.hosts.per_host) ? Way::kLong : Way::kPlan;
}

Status HostsCall::set(const CallArgs& args) {
  args_ = args;
  way_ = way_of(args);
  if (way_ == Way::kPlan) {
    if (!planned_) planned_.emplace(parts_.team);
    return planned_->set(args);
  }
  const std::size_t element_bytes = size_of(args.type);
  const auto per_host = static_cast<std::uint64_t>(parts_.hosts.per_host);
  num_chunks_ = 1;
  chunk_elements_ = args.count;
  if (way_ == Way::kLong) {
    // As much as the host's ranks scatter without waiting for room: on a crowded host every such wait gives
    // the core away, which took a third longer. In equal chunks, so that no short one comes last.
    const std::uint64_t most = std::max(
        {std::uint64_t{1}, per_host * kLeastShareBytes / element_bytes,
         std::uint64_t{parts_.node.layout().elements_at_once(element_bytes, parts_.hosts.per_host)}});
    const std::uint64_t chunks = (args.count + most - 1) / most;
    chunk_elements_ = (args.count + chunks - 1) / chunks;
    num_chunks_ = (args.count + chunk_elements_ - 1) / chunk_elements_;
    shares_ = parts_.calls.shares(chunk_elements_, element_bytes);
    last_shares_ = parts_.calls.shares(elements_of(num_chunks_ - 1), element_bytes);
  }
  // By what goes through the NICs of a host at once.
  const std::uint64_t elements = way_ == Way::kShort ? args.count * per_host : chunk_elements_;
  const auto choice = std::ranges::find_if(parts_.between, [&](const Design::Choice& each) {
    return elements * element_bytes <= each.up_to_bytes;
  });
  between_args_ = {
      .program = parts_.first_between + static_cast<std::int32_t>(choice - parts_.between.begin()),
      .type = args.type,
      .op = args.op,
      .priority = args.priority};
  // What a host folds is a part of what is averaged; the operation divides by all ranks.
  node_call_ = {.type = args.type, .op = reduce::partial(args.op)};
  return Status::success();
}

std::uint64_t HostsCall::elements_of(std::uint64_t chunk) const {
  return std::min(chunk_elements_, args_.count - chunk * chunk_elements_);
}

void HostsCall::start() {
  state_.store(State::kWaiting, std::memory_order_relaxed);
  parts_.calls.add(*this);
}

bool HostsCall::begin(std::uint64_t number) {
  if (way_ == Way::kPlan) {
    planned_->start_in_progress();
    state_.store(State::kBegun, std::memory_order_release);
    return false;
  }
  status_ = {};
  ended_ = in_memory_ = false;
  scattered_ = gathered_ = 0;
  for (auto& operation : between_) operation.reset();
  node_call_.told = {
      .signature = node::signature_of({.count = args_.count, .type = args_.type, .op = args_.op}),
      .number = number};
  between_args_.told = {.count = args_.count, .type = args_.type, .op = args_.op, .number = number};
  state_.store(State::kBegun, std::memory_order_relaxed);
  return true;
}

// ---- Moving --------------------------------------------------------------------------------------------

bool HostsCall::advance() {
  bool moved = false;
  while (true) {
    if (in_memory_) {
      moved |= parts_.node.advance();
      const std::optional<Status> end = parts_.node.test();
      if (!end) return moved;
      in_memory_ = false;
      moved = true;
      if (!end->ok()) {
        status_ = *end;
      } else if (gathering_) {
        ++gathered_;
      } else {
        start_between();
      }
    }
    if (!status_.ok() || gathered_ == num_chunks_) {
      // What failed here has failed for good: the verdict ends all operations, too.
      ended_ = all_back();
      return moved || ended_;
    }
    if (scattered_ < num_chunks_ && scattered_ < gathered_ + kAhead) {
      start_scatter();
      continue;
    }
    const exec::Operation& oldest = *between_[gathered_ % kAhead];
    if (!oldest.done()) return moved;
    moved = true;
    if (!oldest.status().ok()) {
      status_ = oldest.status();
    } else if (way_ == Way::kShort) {
      ++gathered_;
    } else {
      start_gather();
    }
  }
}

bool HostsCall::all_back() const {
  return std::ranges::all_of(between_, [](const auto& operation) { return !operation || operation->done(); });
}

std::size_t HostsCall::share_at(std::uint64_t chunk) const {
  const std::uint64_t first =
      chunk * chunk_elements_ +
      (way_ == Way::kShort ? 0 : shares_of(chunk)->first(static_cast<std::size_t>(parts_.hosts.local)));
  return first * size_of(args_.type);
}

void HostsCall::start_scatter() {
  const std::size_t begin = scattered_ * chunk_elements_ * size_of(args_.type);
  node_call_.in = args_.in + begin;
  node_call_.out = args_.out + share_at(scattered_);
  node_call_.count = elements_of(scattered_);
  node_call_.collective = way_ == Way::kShort ? Collective::kAllreduce : Collective::kReduceScatter;
  node_call_.sections = way_ == Way::kShort ? nullptr : shares_of(scattered_).get();
  in_memory_ = true;
  gathering_ = false;
  parts_.node.start(node_call_);
}

void HostsCall::start_between() {
  between_args_.in = between_args_.out = args_.out + share_at(scattered_);
  between_args_.count = way_ == Way::kShort
                            ? args_.count
                            : shares_of(scattered_)->count(static_cast<std::size_t>(parts_.hosts.local));
  between_[scattered_ % kAhead] = parts_.team.team.start_in_progress(between_args_);
  ++scattered_;
}

void HostsCall::start_gather() {
  node_call_.in = args_.out + share_at(gathered_);
  node_call_.out = args_.out + gathered_ * chunk_elements_ * size_of(args_.type);
  node_call_.count = elements_of(gathered_);
  node_call_.collective = Collective::kAllgather;
  node_call_.sections = shares_of(gathered_).get();
  in_memory_ = gathering_ = true;
  parts_.node.start(node_call_);
}

// ---- From outside --------------------------------------------------------------------------------------

bool HostsCall::done() const {
  const State state = state_.load(std::memory_order_acquire);
  return state == State::kDone || (state == State::kBegun && way_ == Way::kPlan && planned_->done());
}

Status HostsCall::finish() {
  if (way_ != Way::kPlan) return status_;
  return *planned_->test();
}

std::optional<Status> HostsCall::test() {
  if (!done()) parts_.team.engine.try_progress();
  if (!done()) return std::nullopt;
  return finish();
}

Status HostsCall::wait(const WaitOptions& options) {
  Status status = parts_.team.engine.wait(*this, options);
  return done() ? finish() : status;
}

std::vector<Rank> HostsCall::waiting_for() const {
  if (state_.load(std::memory_order_acquire) != State::kBegun) return parts_.calls.waiting_for();
  return way_ == Way::kPlan ? planned_->waiting_for() : lacking();
}

std::string HostsCall::waiting_text() const {
  if (state_.load(std::memory_order_acquire) != State::kBegun) return parts_.calls.waiting_text();
  return way_ == Way::kPlan ? planned_->waiting_text() : lacking_text();
}

std::vector<Rank> HostsCall::lacking() const {
  std::vector<Rank> ranks;
  if (in_memory_) ranks = parts_.node.waiting_for();
  for (const auto& operation : between_) {
    if (!operation || operation->done()) continue;
    const std::vector<Rank> more = operation->waiting_for();
    ranks.insert(ranks.end(), more.begin(), more.end());
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::string HostsCall::lacking_text() const {
  if (in_memory_) {
    if (std::string text = parts_.node.waiting_text(); !text.empty()) return text;
  }
  for (const auto& operation : between_) {
    if (operation && !operation->done()) return operation->waiting_text();
  }
  return {};
}

}  // namespace hips::comm
