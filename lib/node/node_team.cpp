#include "lib/node/node_team.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>

#include <fmt/format.h>

#include "lib/base/exception_status.hpp"
#include "lib/base/os/futex.hpp"
#include "lib/base/prefetch.hpp"
#include "lib/base/wait/wait_clock.hpp"
#include "lib/base/wait/waiter.hpp"
#include "lib/reduce/reduce.hpp"

namespace hips::node {

Result<std::unique_ptr<NodeTeam>> NodeTeam::create(Config config) {
  if (config.clock == nullptr) config.clock = &SystemClock::instance();
  if (!config.waits) config.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed({}));
  std::unique_ptr<NodeTeam> team(new NodeTeam(std::move(config)));
  team->layout_ = StagingLayout::of(team->config_.size, team->config_.max_staging_bytes,
                                    team->config_.num_slices, team->config_.oversubscribed);
  auto block =
      team->config_.segment->open(team->config_.id, team->config_.size, team->layout_.segment_bytes());
  if (!block) return hips::fail(std::move(block).error());
  team->block_ = *block;
  return team;
}

NodeTeam::~NodeTeam() {
  if (block_ != nullptr) config_.segment->close(*block_, config_.rank, processes_);
}

Status NodeTeam::connect(std::span<const NodeName> names) {
  std::vector<std::shared_ptr<NodePeer>> processes;
  for (std::size_t r = 0; r < names.size(); ++r) {
    auto process = config_.segment->peer(names[r]);
    if (!process) {
      Status status = std::move(process).error();
      status.rank = name(static_cast<Rank>(r));
      if (status.code == Code::kPeerLost)
        status.message = fmt::format("rank {} is lost: {}", status.rank, status.message);
      return status;
    }
    processes.push_back(*std::move(process));
  }
  connect(std::move(processes));
  return Status::success();
}

void NodeTeam::connect(std::vector<std::shared_ptr<NodePeer>> processes) {
  peers_.resize(processes.size());
  sources_.resize(processes.size());
  processes_ = std::move(processes);
  for (std::size_t r = 0; r < peers_.size(); ++r) peers_[r].process = processes_[r].get();
  peers_[self()].block = block_;
  // Another thread may call fail() already, which reads this and then the peers.
  const std::lock_guard lock(mutex_);
  connected_ = true;
}

bool NodeTeam::find_block(Rank rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  SharedBlock* const found = peer.process->find(config_.id);
  if (found == nullptr) return false;
  if (found->layout_bytes != layout_.segment_bytes()) {
    stop(
        Status::error(
            Code::kMismatch,
            fmt::format("rank {} shares {} bytes of staging, expected {}: do all ranks run the same library?",
                        name(rank), found->layout_bytes, layout_.segment_bytes())),
        rank);
    return false;
  }
  peer.block = found;
  return true;
}

// The owner is the first to write into each page of its staging, and so gets it on its own NUMA node.
bool NodeTeam::take_staging(Piece SharedBlock::*piece, std::byte* Peer::*at, std::size_t bytes) {
  Peer& own = peers_[self()];
  auto taken = config_.segment->take_staging(bytes);
  if (!taken) {
    stop(std::move(taken).error(), config_.rank);
    return false;
  }
  block_->*piece = *taken;
  own.*at = own.process->at(taken->at);
  return true;
}

void NodeTeam::find_staging(Piece SharedBlock::*piece, std::byte* Peer::*at) {
  for (Peer& peer : peers_)
    if (peer.*at == nullptr) peer.*at = peer.process->at((peer.block->*piece).at);
}

void NodeTeam::stop(Status status, Rank rank) {
  stage_ = Stage::kStuck;
  status.rank = name(rank);
  status.scope = Scope::kCommunicator;
  report(status);
}

// ---- A call --------------------------------------------------------------------------------------------

void NodeTeam::start(const Call& call) {
  call_ = call;
  begin_ns_ = now_if_traced();
  ++number_;
  next_called_ = 0;
  if (failed_.load(std::memory_order_relaxed)) {
    // A peer may not know of the failure yet, and may still read the staging of the failed call, so nothing
    // may overwrite it.
    stage_ = Stage::kStuck;
    return;
  }
  const std::size_t element_bytes = element_bytes_ = size_of(call.type);
  signature_ = call.user_call ? call.user_call->signature : signature_of(call);
  shown_inline_ = shown_bytes() <= CallLine::kInlineBytes;
  if (shown_bytes() > layout_.exchange_bytes) {
    stage_ = Stage::kSlices;
    if (block_->slices.at == 0 &&
        !take_staging(&SharedBlock::slices, &Peer::slices, layout_.num_slices * layout_.slice_bytes))
      return;
    start_slices();
    publish_locations();
    publish({});
    return;
  }
  stage_ = Stage::kExchange;
  if (!shown_inline_ && block_->exchange.at == 0 &&
      !take_staging(&SharedBlock::exchange, &Peer::exchange, 2 * layout_.exchange_bytes))
    return;
  switch (call.collective) {
    case Collective::kAllgather:
    case Collective::kGather:
      return publish({call.in, call.sections->count(self()) * element_bytes});
    case Collective::kBcast:
      return publish({call.out, is_root() ? bytes() : 0});
    case Collective::kScatter:
      return publish({call.in, is_root() ? bytes() : 0});
    default:
      return publish({call.in, bytes()});
  }
}

void NodeTeam::publish(std::span<const std::byte> operands) {
  CallLine& line = block_->lines[number_ & 1U];
  line.signature = signature_;
  if (shown_inline_) {
    if (!operands.empty()) std::memcpy(line.operands.data(), operands.data(), operands.size());
  } else if (!operands.empty()) {
    std::memcpy(peers_[self()].exchange + layout_.exchange_offset(number_), operands.data(), operands.size());
  }
  line.call.store(number_, std::memory_order_seq_cst);
  wake_others();
}

// No wake-up is lost: a waker stores its news and then reads `sleepers`; a sleeper increments `sleepers` and
// then reads the news. All four operations are sequentially consistent, so at least one of the two sees the
// other. As long as the first rank has not opened its block nobody sleeps there.
void NodeTeam::wake_others() {
  if (!has_block(0)) return;
  SharedBlock& first = *peers_[0].block;
  if (first.sleepers.load(std::memory_order_seq_cst) > 0) wake_sleepers(first);
}

void NodeTeam::wake_sleepers(SharedBlock& first) {
  if (!config_.uses_wake_pipes) {
    first.wake_word.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(first.wake_word);
    return;
  }
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (r != self()) peers_[r].process->wake();
}

// The flag is set before `sleepers`: a waker that sees `sleepers` also sees the flag, and one that does not
// has stored its news before the next advance(). Teams with wake pipes meet in an exchange, after which all blocks are open.
int NodeTeam::arm() {
  config_.segment->self().header().asleep.store(1, std::memory_order_seq_cst);
  is_armed_ = has_block(0);
  if (is_armed_) peers_[0].block->sleepers.fetch_add(1, std::memory_order_seq_cst);
  return config_.segment->wake_pipe().fd();
}

void NodeTeam::disarm() {
  if (is_armed_) peers_[0].block->sleepers.fetch_sub(1, std::memory_order_seq_cst);
  config_.segment->self().header().asleep.store(0, std::memory_order_seq_cst);
  // The rank that cleared the flag may send the wake-up a moment later. Then the next sleep is short.
  config_.segment->wake_pipe().empty();
}

bool NodeTeam::advance() {
  switch (stage_) {
    case Stage::kExchange:
      return advance_exchange();
    case Stage::kSlices:
      return advance_slices();
    case Stage::kIdle:
    case Stage::kStuck:
      return false;
  }
  return false;
}

// A rank does not read its own line: on some CPUs reading moves a newly written line to the reader's cache
// entirely, and it would have to come back.
bool NodeTeam::all_called() {
  for (; next_called_ < peers_.size(); ++next_called_) {
    if (next_called_ == self()) continue;
    const auto rank = static_cast<Rank>(next_called_);
    const CallLine* const line = has_block(rank) ? &peers_[next_called_].block->lines[number_ & 1U] : nullptr;
    const bool here = line != nullptr && line->call.load(std::memory_order_seq_cst) == number_;
    note_missing(!here, rank);
    if (!here) return false;
    if (line->signature == signature_) continue;
    mismatch(line->signature, rank);
    return false;
  }
  return true;
}

// Between cores that share no cache, a store into a line that others have read takes as long as reading
// theirs. Prefetched now, when all ranks have left the line's previous call, the line is here before the next
// call. Measured: 0.82 of the time up to 32 bytes, no gain if operands are in staging. The prefetch follows
// the reads of the operands, which it would delay.
void NodeTeam::prefetch_next_line() {
  if (!shown_inline_) return;
  const auto* const line = reinterpret_cast<const std::byte*>(&block_->lines[(number_ + 1) & 1U]);
  const std::size_t end = offsetof(CallLine, operands) + shown_bytes();
  for (std::size_t at = 0; at < end; at += kLine) prefetch_for_write(line + at);
}

bool NodeTeam::advance_exchange() {
  if (!all_called()) return false;
  if (!shown_inline_) find_staging(&SharedBlock::exchange, &Peer::exchange);
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    const Peer& peer = peers_[r];
    sources_[r] = shown_inline_ ? peer.block->lines[number_ & 1U].operands.data()
                                : peer.exchange + layout_.exchange_offset(number_);
  }
  const std::int64_t begin_ns = now_if_traced();
  finish_exchange();
  prefetch_next_line();
  trace(TraceEvent::Kind::kReduce, begin_ns, 0, bytes());
  end();
  return true;
}

void NodeTeam::finish_exchange() {
  const std::size_t element_bytes = element_bytes_;
  switch (call_.collective) {
    case Collective::kReduce:
      if (!is_root()) return;
      [[fallthrough]];
    case Collective::kAllreduce:
      sources_[self()] = call_.in;
      reduce::fold(call_.type, call_.op, call_.out, sources_, call_.count);
      return;
    case Collective::kReduceScatter: {
      const Sections& sections = *call_.sections;
      // In place, the operands may overlap the result without being equal to it.
      if (!scatters_in_place()) sources_[self()] = call_.in;
      for (const std::byte*& source : sources_) source += sections.first(self()) * element_bytes;
      reduce::fold(call_.type, call_.op, call_.out, sources_, sections.count(self()));
      return;
    }
    case Collective::kGather:
      if (!is_root()) return;
      [[fallthrough]];
    case Collective::kAllgather: {
      const Sections& sections = *call_.sections;
      sources_[self()] = call_.in;
      for (std::size_t r = 0; r < sources_.size(); ++r) {
        std::byte* const to = call_.out + sections.displacement(r) * element_bytes;
        if (sections.count(r) > 0 && to != sources_[r])
          std::memcpy(to, sources_[r], sections.count(r) * element_bytes);
      }
      return;
    }
    case Collective::kScatter: {
      const std::byte* const from = (is_root() ? call_.in : sources_[static_cast<std::size_t>(call_.root)]) +
                                    call_.sections->first(self()) * element_bytes;
      const std::size_t own_bytes = call_.sections->count(self()) * element_bytes;
      if (own_bytes > 0 && from != call_.out) std::memcpy(call_.out, from, own_bytes);
      return;
    }
    case Collective::kAlltoall: {
      const Sections& sections = *call_.sections;
      sources_[self()] = call_.in;
      for (std::size_t r = 0; r < sources_.size() && bytes() > 0; ++r)
        std::memcpy(call_.out + sections.first(r) * element_bytes,
                    sources_[r] + sections.first(self()) * element_bytes, sections.count(r) * element_bytes);
      return;
    }
    case Collective::kBcast:
      if (!is_root() && call_.count > 0)
        std::memcpy(call_.out, sources_[static_cast<std::size_t>(call_.root)], bytes());
      return;
    case Collective::kBarrier:
      return;
  }
}

void NodeTeam::end() {
  stage_ = Stage::kIdle;
  held_.drop();
  trace(TraceEvent::Kind::kOperation, begin_ns_, -1, bytes());
}

// ---- Traces --------------------------------------------------------------------------------------------

void NodeTeam::record(TraceEvent::Kind kind, std::int64_t begin_ns, std::int64_t segment, std::size_t bytes,
                      Rank peer) const {
  const bool direct_call = kind == TraceEvent::Kind::kOperation;
  config_.trace->record({.kind = kind,
                         .begin_ns = begin_ns,
                         .end_ns = config_.clock->now_ns(),
                         .communicator = config_.id,
                         .sequence = number_,
                         .lane = direct_call ? -1 : 0,
                         .peer = peer < 0 ? peer : name(peer),
                         .segment = static_cast<std::int32_t>(segment),
                         .bytes = static_cast<std::int64_t>(bytes)});
}

void NodeTeam::note_missing(bool missing, Rank peer) {
  if (config_.trace == nullptr) return;
  if (missing) {
    if (missing_since_ns_ == 0) missing_since_ns_ = config_.clock->now_ns();
    missing_rank_ = peer;
  } else if (missing_since_ns_ != 0 && peer == missing_rank_) {
    trace(TraceEvent::Kind::kWait, missing_since_ns_, -1, 0, peer);
    missing_since_ns_ = 0;
  }
}

// ---- Waiting -------------------------------------------------------------------------------------------

std::optional<Status> NodeTeam::test() {
  if (!done()) (void)advance();
  if (done()) return Status::success();
  if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
  return leave();
}

bool NodeTeam::poll_briefly() {
  constexpr int kPolls = 128;
  // With fewer cores than ranks, a peer that is missing now may be waiting for this core.
  for (int polls = std::min(config_.waits->budget(WaitKind::kMemory).spin_polls, kPolls);; Waiter::relax()) {
    (void)advance();
    if (done()) return true;
    if (--polls < 0) return false;
  }
}

Status NodeTeam::wait(const WaitOptions& options) {
  Waiter waiter(*config_.waits, WaitKind::kMemory, *config_.clock);
  WaitClock time(options, *config_.clock);
  while (!done()) {
    if (advance()) {
      waiter.moved();
      continue;
    }
    if (failed_.load(std::memory_order_acquire)) return leave();
    if (waiter.stay_awake()) {
      if (!waiter.time_to_look(time.polls_per_look())) continue;
    } else {
      sleep(time.sleep_ns());
    }
    if (time.look()) time.tick();
    if (time.late() && !done()) {
      return Status::error(Code::kTimeout, "the deadline passed; missing: " + waiting_text());
    }
  }
  return Status::success();
}

Status NodeTeam::leave() {
  withdraw_buffers();
  const std::lock_guard lock(mutex_);
  return failure_;
}

void NodeTeam::abandon() noexcept {
  fail(abandoned());
  withdraw_buffers();
}

Status NodeTeam::abandoned() noexcept {
  // A message this short needs no allocation; there may be no memory.
  return Status::error(Code::kOutOfMemory, "out of memory", Scope::kCommunicator);
}

void NodeTeam::withdraw_buffers() noexcept {
  // Mark the buffers as withdrawn before the user gets them back. A peer that reads new data in them sees the
  // mark afterwards.
  if (held_.any()) {
    block_->left.store(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // before writes of the user
  }
  held_.drop();
  stage_ = Stage::kIdle;
}

void NodeTeam::sleep(std::int64_t timeout_ns) {
  if (!has_block(0)) {
    constexpr std::int64_t kNapNs = 200'000;
    const timespec nap{0, std::min(timeout_ns, kNapNs)};
    nanosleep(&nap, nullptr);
    return;
  }
  SharedBlock& first = *peers_[0].block;
  first.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t wake_word = first.wake_word.load(std::memory_order_seq_cst);
  if (!advance() && !failed_.load(std::memory_order_seq_cst))
    futex_wait(first.wake_word, wake_word, timeout_ns);
  first.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void NodeTeam::fail(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    failure_ = kept(status);
    failed_.store(true, std::memory_order_seq_cst);
    if (!connected_) return;
  }
  // This may be another thread than the caller's, which alone looks into peers_.
  if (SharedBlock* const first = processes_[0]->find(config_.id)) wake_sleepers(*first);
}

void NodeTeam::mismatch(const Signature& theirs, Rank rank) {
  stage_ = Stage::kStuck;
  Status status = Status::error(
      Code::kMismatch,
      fmt::format("{} #{}: rank {} called with {}, but rank {} with {}; all ranks must pass the same",
                  hips::to_string(collective_of(signature_)),
                  call_.user_call ? call_.user_call->number : number_, name(config_.rank),
                  to_string(signature_), name(rank), to_string(theirs)),
      Scope::kCommunicator);
  status.rank = name(rank);
  report(status);
}

void NodeTeam::report(const Status& status) {
  if (config_.on_error) {
    config_.on_error(status);
  } else {
    fail(status);
  }
}

std::vector<Rank> NodeTeam::waiting_for() const {
  if (done()) return {};
  const auto behind = [&](auto is_behind) {
    std::vector<Rank> ranks;
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (static_cast<Rank>(r) == config_.rank) continue;
      const SharedBlock* block = peers_[r].block;
      if (block == nullptr) block = peers_[r].process->find(config_.id);
      if (block == nullptr || is_behind(*block)) ranks.push_back(name(static_cast<Rank>(r)));
    }
    return ranks;
  };
  const auto below = [](const SliceCount& count, std::uint64_t wanted) {
    return count.value.load(std::memory_order_seq_cst) < wanted;
  };
  // Name only the ranks that are furthest behind: all others wait for them.
  auto ranks = behind([&](const SharedBlock& block) {
    return block.lines[number_ & 1U].call.load(std::memory_order_seq_cst) != number_;
  });
  if (!ranks.empty() || stage_ != Stage::kSlices) return ranks;
  if (taken_ == num_slices_)
    return behind([&](const SharedBlock& block) { return below(block.taken, first_slice_ + num_slices_); });
  const auto note = [&](const SliceCount SharedBlock::*count, std::uint64_t wanted) {
    std::vector<Rank> found = behind([&](const SharedBlock& block) { return below(block.*count, wanted); });
    if (!found.empty() && (ranks.empty() || found.size() < ranks.size())) ranks = std::move(found);
  };
  note(&SharedBlock::copied, first_slice_ + (two_stages_ ? taken_ : reduced_) + 1);
  if (!two_stages_) note(&SharedBlock::reduced, first_slice_ + taken_ + 1);
  // A slice is free again when all have taken it.
  const std::uint64_t copying = first_slice_ + copied_ + 1;
  if (copied_ < num_slices_ && copying > layout_.num_slices)
    note(&SharedBlock::taken, copying - layout_.num_slices);
  return ranks;
}

std::string NodeTeam::waiting_text() const {
  const std::vector<Rank> ranks = waiting_for();
  if (ranks.empty()) return {};
  return fmt::format("rank {} (shared memory{})", fmt::join(ranks, ", rank "),
                     stage_ == Stage::kSlices
                         ? fmt::format(", slice {} of {}", std::min(taken_ + 1, num_slices_), num_slices_)
                         : "");
}

}  // namespace hips::node
