#include "lib/comm/calls/hierarchical_call.hpp"

#include <algorithm>
#include <utility>

#include "lib/comm/calls/hierarchical_calls.hpp"
#include "lib/reduce/reduce.hpp"

namespace hips::comm {
namespace {

/// A smaller share is not worth an operation, even if staging has room for less only.
constexpr std::uint64_t kLeastShareBytes = 64U << 10U;

}  // namespace

HierarchicalCall::Path HierarchicalCall::path_of(const CallArgs& args) const {
  const bool is_barrier = args.collective == Collective::kBarrier;
  if (!is_barrier && (args.collective != Collective::kAllreduce || is_ordered(args.op))) return Path::kPlan;
  const std::uint64_t bytes = is_barrier ? sizeof token_ : args.count * size_of(args.type);
  if (!parts_.team.plans.is_automatic(bytes)) return Path::kPlan;
  // An empty vector cannot be divided.
  if (bytes == 0 || bytes <= parts_.between.whole_up_to_bytes) return Path::kWhole;
  if (!parts_.nodes.share_long_vectors() && bytes > parts_.between.one_leader_up_to_bytes) return Path::kPlan;
  return parts_.calls.staging_holds(size_of(args.type)) ? Path::kShares : Path::kPlan;
}

Status HierarchicalCall::set(const CallArgs& call) {
  user_ = call;
  path_ = path_of(call);
  if (path_ == Path::kPlan) {
    if (!planned_) planned_.emplace(parts_.team);
    return planned_->set(call);
  }
  args_ = call.collective != Collective::kBarrier ? call
                                                  : CallArgs{.collective = Collective::kAllreduce,
                                                             .in = &token_,
                                                             .out = &token_,
                                                             .count = 1,
                                                             .type = DataType::kUint8,
                                                             .op = ReduceOp::kBor,
                                                             .priority = call.priority};
  const CallArgs& args = args_;
  const std::size_t element_bytes = size_of(args.type);
  const auto most_leaders = static_cast<std::uint64_t>(parts_.nodes.least_ranks());
  num_chunks_ = 1;
  chunk_elements_ = args.count;
  if (path_ == Path::kShares) {
    // A chunk is what the ranks of the node scatter without waiting for staging: on an oversubscribed node
    // every such wait yields the core, which took a third longer. Chunks are equal, so that the last is not short.
    const std::uint64_t most = std::max({std::uint64_t{1}, most_leaders * kLeastShareBytes / element_bytes,
                                         parts_.calls.elements_at_once(element_bytes)});
    const std::uint64_t chunks = (args.count + most - 1) / most;
    chunk_elements_ = (args.count + chunks - 1) / chunks;
    num_chunks_ = (args.count + chunk_elements_ - 1) / chunk_elements_;
    const bool one_leader = args.count * element_bytes <= parts_.between.one_leader_up_to_bytes;
    const Rank num_leaders = one_leader ? 1 : parts_.nodes.least_ranks();
    shares_ = parts_.calls.shares(chunk_elements_, element_bytes, num_leaders);
    last_shares_ = parts_.calls.shares(elements_of(num_chunks_ - 1), element_bytes, num_leaders);
  }
  // The plan depends on the bytes that pass the NICs of a node at once.
  const std::uint64_t elements = path_ == Path::kWhole ? args.count * most_leaders : chunk_elements_;
  const auto choice = std::ranges::find_if(parts_.between.choices, [&](const Design::Choice& each) {
    return elements * element_bytes <= each.up_to_bytes;
  });
  between_args_ = {
      .program = parts_.first_between + static_cast<std::int32_t>(choice - parts_.between.choices.begin()),
      .type = args.type,
      .op = args.op,
      .priority = args.priority};
  // Of an average a node computes a partial sum only; the inter-node operation divides by the number of ranks.
  node_call_ = {.type = args.type, .op = reduce::partial(args.op)};
  return Status::success();
}

std::uint64_t HierarchicalCall::elements_of(std::uint64_t chunk) const {
  return std::min(chunk_elements_, args_.count - chunk * chunk_elements_);
}

void HierarchicalCall::start() {
  status_ = {};
  state_.store(State::kWaiting, std::memory_order_relaxed);
  parts_.calls.add(*this);
}

bool HierarchicalCall::begin(std::uint64_t number) {
  if (path_ == Path::kPlan) {
    try {
      planned_->start_in_progress();
    } catch (...) {
      status_ = parts_.calls.found_exception();
    }
    state_.store(State::kBegun, std::memory_order_release);
    return false;
  }
  ended_ = in_memory_ = false;
  scattered_ = gathered_ = 0;
  for (auto& operation : between_) operation.reset();
  node_call_.user_call = {
      .signature = node::signature_of(
          {.collective = user_.collective, .count = user_.count, .type = user_.type, .op = user_.op}),
      .number = number};
  between_args_.user_call = {.count = user_.count,
                             .type = user_.type,
                             .op = user_.op,
                             .collective = user_.collective,
                             .number = number};
  state_.store(State::kBegun, std::memory_order_relaxed);
  return true;
}

// ---- Progress ------------------------------------------------------------------------------------------

bool HierarchicalCall::advance() {
  try {
    return make_progress();
  } catch (...) {
    status_ = parts_.calls.found_exception();
    // It would throw again, and never end.
    if (in_memory_) parts_.node.abandon();
    return true;
  }
}

bool HierarchicalCall::make_progress() {
  bool moved = false;
  while (true) {
    if (in_memory_) {
      moved |= parts_.node.advance();
      const std::optional<Status> end = parts_.node.test();
      if (!end) return moved;
      in_memory_ = false;
      moved = true;
      if (!end->ok() || !status_.ok()) {
        if (status_.ok()) status_ = *end;
      } else if (gathering_) {
        ++gathered_;
      } else {
        start_between();
      }
    }
    if (!status_.ok() || gathered_ == num_chunks_) {
      // A failure here fails the communicator, which ends all operations too.
      ended_ = all_between_done();
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
    } else if (path_ == Path::kWhole) {
      ++gathered_;
    } else {
      start_gather();
    }
  }
}

bool HierarchicalCall::all_between_done() const {
  return std::ranges::all_of(between_, [](const auto& operation) { return !operation || operation->done(); });
}

std::size_t HierarchicalCall::share_at(std::uint64_t chunk) const {
  const std::uint64_t first =
      chunk * chunk_elements_ +
      (path_ == Path::kWhole ? 0
                             : shares_of(chunk)->first(static_cast<std::size_t>(parts_.nodes.local_rank)));
  return first * size_of(args_.type);
}

void HierarchicalCall::start_scatter() {
  const std::size_t begin = scattered_ * chunk_elements_ * size_of(args_.type);
  node_call_.in = args_.in + begin;
  node_call_.out = args_.out + share_at(scattered_);
  node_call_.count = elements_of(scattered_);
  node_call_.collective = path_ == Path::kWhole ? Collective::kAllreduce : Collective::kReduceScatter;
  node_call_.sections = path_ == Path::kWhole ? nullptr : shares_of(scattered_).get();
  in_memory_ = true;
  gathering_ = false;
  parts_.node.start(node_call_);
}

void HierarchicalCall::start_between() {
  between_args_.in = between_args_.out = args_.out + share_at(scattered_);
  between_args_.count = path_ == Path::kWhole
                            ? args_.count
                            : shares_of(scattered_)->count(static_cast<std::size_t>(parts_.nodes.local_rank));
  // Also without a share, which sends nothing: all ranks count the team's operations.
  between_[scattered_ % kAhead] = parts_.team.team.start_in_progress(between_args_);
  ++scattered_;
}

void HierarchicalCall::start_gather() {
  node_call_.in = args_.out + share_at(gathered_);
  node_call_.out = args_.out + gathered_ * chunk_elements_ * size_of(args_.type);
  node_call_.count = elements_of(gathered_);
  node_call_.collective = Collective::kAllgather;
  node_call_.sections = shares_of(gathered_).get();
  in_memory_ = gathering_ = true;
  parts_.node.start(node_call_);
}

// ---- The caller's side ---------------------------------------------------------------------------------

bool HierarchicalCall::done() const {
  const State state = state_.load(std::memory_order_acquire);
  return state == State::kDone || (state == State::kBegun && path_ == Path::kPlan && planned_->done());
}

Status HierarchicalCall::finish() {
  if (path_ != Path::kPlan || !status_.ok()) return status_;
  return *planned_->test();
}

std::optional<Status> HierarchicalCall::test() {
  if (!done()) parts_.team.engine.try_progress();
  if (!done()) return std::nullopt;
  return finish();
}

Status HierarchicalCall::wait(const WaitOptions& options) {
  Status status = parts_.team.engine.wait(*this, options);
  return done() ? finish() : status;
}

std::vector<Rank> HierarchicalCall::waiting_for() const {
  if (state_.load(std::memory_order_acquire) != State::kBegun) return parts_.calls.waiting_for();
  return path_ == Path::kPlan ? planned_->waiting_for() : missing();
}

std::string HierarchicalCall::waiting_text() const {
  if (state_.load(std::memory_order_acquire) != State::kBegun) return parts_.calls.waiting_text();
  return path_ == Path::kPlan ? planned_->waiting_text() : missing_text();
}

std::vector<Rank> HierarchicalCall::missing() const {
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

std::string HierarchicalCall::missing_text() const {
  if (in_memory_) {
    if (std::string text = parts_.node.waiting_text(); !text.empty()) return text;
  }
  for (const auto& operation : between_) {
    if (operation && !operation->done()) return operation->waiting_text();
  }
  return {};
}

}  // namespace hips::comm
