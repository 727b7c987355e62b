#include "lib/node/node_team.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "lib/base/futex.hpp"
#include "lib/base/wait_clock.hpp"
#include "lib/reduce/reduce.hpp"

namespace hips::node {
namespace {

// A signature tells two calls apart, and says what they were.
constexpr int kTypeShift = 48, kOpShift = 56;

std::uint64_t signature_of(const Call& call) {
  return call.count | static_cast<std::uint64_t>(call.type) << kTypeShift |
         static_cast<std::uint64_t>(call.op) << kOpShift;
}

std::string signature_text(std::uint64_t signature) {
  const auto type = static_cast<DataType>(signature >> kTypeShift & 0xff);
  const auto op = static_cast<ReduceOp>(signature >> kOpShift);
  return fmt::format("{} x {}, {}", signature & ((std::uint64_t{1} << kTypeShift) - 1), to_string(type),
                     to_string(op));
}

}  // namespace

Result<std::unique_ptr<NodeTeam>> NodeTeam::create(Config config) {
  if (config.clock == nullptr) config.clock = &SystemClock::instance();
  std::unique_ptr<NodeTeam> team(new NodeTeam(std::move(config)));
  team->layout_ = StagingLayout::of(team->config_.size, team->config_.max_staging_bytes);
  auto memory = SharedMemory::create(team->layout_.segment_bytes());
  if (!memory) return hips::fail(memory.error());
  team->own_ = std::move(*memory);
  team->block_ = new (team->own_.data()) SharedBlock;
  team->block_->bytes = team->layout_.segment_bytes();
  return team;
}

NodeTeam::~NodeTeam() = default;

Status NodeTeam::connect(std::span<const SharedMemoryName> names) {
  peers_.resize(names.size());
  sources_.resize(names.size());
  for (std::size_t r = 0; r < names.size(); ++r) {
    Peer& peer = peers_[r];
    if (static_cast<Rank>(r) == config_.rank) {
      peer.memory = own_;
    } else {
      auto memory = SharedMemory::attach(names[r]);
      if (!memory) {
        Status status = memory.error();
        status.rank = static_cast<Rank>(r);
        return status;
      }
      peer.memory = std::move(*memory);
    }
    peer.block = reinterpret_cast<SharedBlock*>(peer.memory.data());
    if (peer.memory.size() < layout_.segment_bytes() || peer.block->magic != SharedBlock::kMagic ||
        peer.block->bytes != layout_.segment_bytes()) {
      return Status::error(
          Code::kMismatch,
          fmt::format("rank {} shares {} bytes of another layout, not {}: do all ranks run the "
                      "same library?",
                      r, peer.memory.size(), layout_.segment_bytes()),
          Scope::kCommunicator);
    }
  }
  first_ = peers_[0].block;
  return Status::success();
}

// ---- A call --------------------------------------------------------------------------------------------

void NodeTeam::start(const Call& call) {
  call_ = call;
  begin_ns_ = now_if_traced();
  ++number_;
  next_called_ = 0;
  signature_ = signature_of(call);
  if (bytes() <= layout_.exchange_bytes) {
    stage_ = Stage::kExchange;
    publish({call.in, bytes()});
    return;
  }
  stage_ = Stage::kSlices;
  num_slices_ = (call.count + slice_elements() - 1) / slice_elements();
  copied_ = reduced_ = taken_ = 0;
  whole_ = config_.size == 2;
  // What is found in the caches later depends on what the program does meanwhile; beyond this, nothing is.
  constexpr std::size_t kStreamBytes = 4U << 20U;
  stream_ = bytes() >= kStreamBytes;
  publish({});
}

void NodeTeam::publish(std::span<const std::byte> operands) {
  CallLine& line = block_->lines[number_ & 1U];
  line.signature = signature_;
  if (operands.size() <= CallLine::kInlineBytes) {
    if (!operands.empty()) std::memcpy(line.operands.data(), operands.data(), operands.size());
  } else {
    std::memcpy(own_.data() + layout_.exchange_offset(number_), operands.data(), operands.size());
  }
  line.call.store(number_, std::memory_order_seq_cst);
  ring();
}

// Whoever stores news and then reads `sleepers`, and whoever enters `sleepers` and then reads the news, do
// all four in the one order of sequentially consistent operations: one of them sees the other.
void NodeTeam::ring() {
  if (first_->sleepers.load(std::memory_order_seq_cst) == 0) return;
  first_->bell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake_all(first_->bell);
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

bool NodeTeam::all_called() {
  for (; next_called_ < peers_.size(); ++next_called_) {
    const CallLine& line = peers_[next_called_].block->lines[number_ & 1U];
    const bool here = line.call.load(std::memory_order_seq_cst) == number_;
    lacks(!here, static_cast<Rank>(next_called_));
    if (!here) return false;
    if (line.signature == signature_) continue;
    mismatch(line.signature, static_cast<Rank>(next_called_));
    return false;
  }
  return true;
}

bool NodeTeam::advance_exchange() {
  if (!all_called()) return false;
  const bool is_inline = bytes() <= CallLine::kInlineBytes;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    const Peer& peer = peers_[r];
    sources_[r] = is_inline ? peer.block->lines[number_ & 1U].operands.data()
                            : peer.memory.data() + layout_.exchange_offset(number_);
  }
  const std::int64_t begin_ns = now_if_traced();
  reduce::fold(call_.type, call_.op, call_.out, sources_, call_.count);
  trace(TraceEvent::Kind::kReduce, begin_ns, 0, bytes());
  end();
  return true;
}

// ---- Slices --------------------------------------------------------------------------------------------

bool NodeTeam::advance_slices() {
  bool moved = false;
  while (true) {
    // The last stage first: what it reads is still in the cache, and it makes room for others.
    const std::uint64_t taking = first_slice_ + taken_ + 1;
    if (whole_ ? taken_ < copied_ && all_at(&Peer::copied, &SharedBlock::copied, taking) && all_called()
               : taken_ < reduced_ && all_at(&Peer::reduced, &SharedBlock::reduced, taking)) {
      const std::int64_t begin_ns = now_if_traced();
      whole_ ? fold_whole(taken_) : copy_out(taken_);
      trace(TraceEvent::Kind::kReduce, begin_ns, static_cast<std::int64_t>(taken_),
            elements_of(taken_) * size_of(call_.type));
      ++taken_;
      block_->taken.value.store(taking, std::memory_order_seq_cst);
      ring();
      moved = true;
      if (taken_ == num_slices_) {
        first_slice_ += num_slices_;
        end();
        return true;
      }
      continue;
    }
    const std::uint64_t reducing = first_slice_ + reduced_ + 1;
    if (!whole_ && reduced_ < copied_ && all_at(&Peer::copied, &SharedBlock::copied, reducing) &&
        all_called()) {
      const std::int64_t begin_ns = now_if_traced();
      fold_part(reduced_);
      trace(TraceEvent::Kind::kReduce, begin_ns, static_cast<std::int64_t>(reduced_),
            elements_of(reduced_) * size_of(call_.type));
      ++reduced_;
      block_->reduced.value.store(reducing, std::memory_order_seq_cst);
      ring();
      moved = true;
      continue;
    }
    const std::uint64_t copying = first_slice_ + copied_ + 1;
    const std::uint64_t room = copying > layout_.num_slices ? copying - layout_.num_slices : 0;
    if (copied_ < num_slices_ && all_at(&Peer::taken, &SharedBlock::taken, room)) {
      copy_in(copied_);
      ++copied_;
      block_->copied.value.store(copying, std::memory_order_seq_cst);
      ring();
      moved = true;
      continue;
    }
    return moved;
  }
}

bool NodeTeam::all_at(std::uint64_t Peer::*seen, SliceCount SharedBlock::*count, std::uint64_t wanted) {
  for (Peer& peer : peers_) {
    if (peer.*seen >= wanted) continue;
    peer.*seen = (peer.block->*count).value.load(std::memory_order_seq_cst);
    lacks(peer.*seen < wanted, static_cast<Rank>(&peer - peers_.data()));
    if (peer.*seen < wanted) return false;
  }
  return true;
}

std::size_t NodeTeam::elements_of(std::uint64_t slice) const {
  return std::min<std::size_t>(slice_elements(), call_.count - slice * slice_elements());
}

std::byte* NodeTeam::staging_of(const Peer& peer, std::uint64_t slice) const {
  return peer.memory.data() + layout_.slice_offset(first_slice_ + slice);
}

void NodeTeam::copy_in(std::uint64_t slice) {
  const std::size_t element_bytes = size_of(call_.type);
  const std::byte* from = call_.in + slice * slice_elements() * element_bytes;
  std::byte* to = staging_of(peers_[static_cast<std::size_t>(config_.rank)], slice);
  const std::size_t bytes = elements_of(slice) * element_bytes;
  if (whole_) {
    std::memcpy(to, from, bytes);
    return;
  }
  // This rank folds its own part, from where it is.
  const Part own = part_of(elements_of(slice), element_bytes, config_.rank, config_.size);
  const std::size_t begin = own.first * element_bytes, end = (own.first + own.elements) * element_bytes;
  std::memcpy(to, from, begin);
  std::memcpy(to + end, from + end, bytes - end);
}

void NodeTeam::fold_part(std::uint64_t slice) {
  const std::size_t element_bytes = size_of(call_.type);
  const Part own = part_of(elements_of(slice), element_bytes, config_.rank, config_.size);
  const std::size_t begin = own.first * element_bytes;
  for (std::size_t r = 0; r < peers_.size(); ++r) sources_[r] = staging_of(peers_[r], slice) + begin;
  const auto self = static_cast<std::size_t>(config_.rank);
  std::byte* const to = staging_of(peers_[self], slice) + begin;
  sources_[self] = call_.in + slice * slice_elements() * element_bytes + begin;
  reduce::fold(call_.type, call_.op, to, sources_, own.elements);
}

void NodeTeam::fold_whole(std::uint64_t slice) {
  const std::size_t begin = slice * slice_elements() * size_of(call_.type);
  for (std::size_t r = 0; r < peers_.size(); ++r) sources_[r] = staging_of(peers_[r], slice);
  sources_[static_cast<std::size_t>(config_.rank)] = call_.in + begin;
  const auto fold = stream_ ? reduce::fold_streaming : reduce::fold;
  fold(call_.type, call_.op, call_.out + begin, sources_, elements_of(slice));
}

void NodeTeam::copy_out(std::uint64_t slice) {
  const std::size_t element_bytes = size_of(call_.type);
  std::byte* const to = call_.out + slice * slice_elements() * element_bytes;
  // Not all from the same rank at once.
  for (int i = 0; i < config_.size; ++i) {
    const int r = (config_.rank + i) % config_.size;
    const Part part = part_of(elements_of(slice), element_bytes, r, config_.size);
    const std::byte* from =
        staging_of(peers_[static_cast<std::size_t>(r)], slice) + part.first * element_bytes;
    const auto copy = stream_ ? reduce::copy_streaming : reduce::copy;
    copy(to + part.first * element_bytes, from, part.elements * element_bytes);
  }
}

void NodeTeam::end() {
  stage_ = Stage::kIdle;
  trace(TraceEvent::Kind::kOperation, begin_ns_, -1, bytes());
}

// ---- Traces --------------------------------------------------------------------------------------------

std::int64_t NodeTeam::now_if_traced() const {
  return config_.trace == nullptr ? 0 : config_.clock->now_ns();
}

void NodeTeam::trace(TraceEvent::Kind kind, std::int64_t begin_ns, std::int64_t segment, std::size_t bytes,
                     Rank peer) const {
  if (config_.trace == nullptr) return;
  const bool whole_call = kind == TraceEvent::Kind::kOperation;
  config_.trace->record({.kind = kind,
                         .begin_ns = begin_ns,
                         .end_ns = config_.clock->now_ns(),
                         .communicator = config_.id,
                         .sequence = number_,
                         .lane = whole_call ? -1 : 0,
                         .peer = peer,
                         .segment = static_cast<std::int32_t>(segment),
                         .bytes = static_cast<std::int64_t>(bytes)});
}

void NodeTeam::lacks(bool lacking, Rank peer) {
  if (config_.trace == nullptr) return;
  if (lacking) {
    if (lacking_since_ns_ == 0) lacking_since_ns_ = config_.clock->now_ns();
    lacking_ = peer;
  } else if (lacking_since_ns_ != 0 && peer == lacking_) {
    trace(TraceEvent::Kind::kWait, lacking_since_ns_, -1, 0, peer);
    lacking_since_ns_ = 0;
  }
}

// ---- Waiting -------------------------------------------------------------------------------------------

std::optional<Status> NodeTeam::test() {
  if (!done()) (void)advance();
  if (done()) return Status::success();
  if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
  stage_ = Stage::kIdle;
  const std::lock_guard lock(mutex_);
  return failure_;
}

Status NodeTeam::wait(const WaitOptions& options) {
  Idle idle(config_.idle);
  WaitClock time(options, *config_.clock);
  while (!done()) {
    if (advance()) {
      idle.moved();
      continue;
    }
    if (failed_.load(std::memory_order_acquire)) {
      stage_ = Stage::kIdle;
      const std::lock_guard lock(mutex_);
      return failure_;
    }
    if (idle.stay_awake(*config_.clock)) {
      if (!idle.look_around()) continue;
    } else {
      sleep(time.sleep_ns());
    }
    time.look();
    if (time.late() && !done()) {
      return Status::error(Code::kTimeout, "the deadline passed; lacking: " + waiting_text());
    }
  }
  return Status::success();
}

void NodeTeam::sleep(std::int64_t timeout_ns) {
  first_->sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t bell = first_->bell.load(std::memory_order_seq_cst);
  if (!advance() && !failed_.load(std::memory_order_seq_cst)) futex_wait(first_->bell, bell, timeout_ns);
  first_->sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void NodeTeam::fail(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    failure_ = status;
    failed_.store(true, std::memory_order_seq_cst);
  }
  if (first_ != nullptr) ring();
}

void NodeTeam::mismatch(std::uint64_t theirs, Rank rank) {
  stage_ = Stage::kStuck;
  Status status = Status::error(
      Code::kMismatch,
      fmt::format("allreduce #{}: rank {} called with {}, but rank {} with {}; all ranks must "
                  "pass the same",
                  number_, config_.rank, signature_text(signature_), rank, signature_text(theirs)),
      Scope::kCommunicator);
  status.rank = rank;
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
      if (static_cast<Rank>(r) != config_.rank && is_behind(*peers_[r].block))
        ranks.push_back(static_cast<Rank>(r));
    }
    return ranks;
  };
  const auto below = [](const SliceCount& count, std::uint64_t wanted) {
    return count.value.load(std::memory_order_seq_cst) < wanted;
  };
  // Who lacks the least holds up everything after it, and only that is worth telling.
  auto ranks = behind([&](const SharedBlock& block) {
    return block.lines[number_ & 1U].call.load(std::memory_order_seq_cst) != number_;
  });
  if (!ranks.empty() || stage_ != Stage::kSlices) return ranks;
  const std::uint64_t folded = first_slice_ + (whole_ ? taken_ : reduced_);
  ranks = behind([&](const SharedBlock& block) { return below(block.copied, folded + 1); });
  if (ranks.empty() && !whole_)
    ranks = behind([&](const SharedBlock& block) { return below(block.reduced, first_slice_ + taken_ + 1); });
  return ranks;
}

std::string NodeTeam::waiting_text() const {
  const std::vector<Rank> ranks = waiting_for();
  if (ranks.empty()) return {};
  return fmt::format(
      "rank {} (shared memory{})", fmt::join(ranks, ", rank "),
      stage_ == Stage::kSlices ? fmt::format(", slice {} of {}", taken_ + 1, num_slices_) : "");
}

}  // namespace hips::node
