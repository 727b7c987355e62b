#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/exception_status.hpp"
#include "lib/base/type_text.hpp"
#include "lib/exec/team_impl.hpp"

namespace hips::exec {
namespace {

std::string signature(const WireHeader& header) {
  const auto collective = static_cast<Collective>(header.collective);
  const std::uint64_t element_bytes = header.count >> kElementShift;
  const DataType type = element_bytes > 0 ? bytes_type(element_bytes) : static_cast<DataType>(header.type);
  std::string text =
      fmt::format("count {}, {}", header.count & ((std::uint64_t{1} << kElementShift) - 1), type_text(type));
  if (reduces(collective)) text += fmt::format(", {}", to_string(static_cast<ReduceOp>(header.op)));
  text += detail_text(collective, header.detail);
  if (collective != Collective::kAllreduce) text = fmt::format("{} of {}", to_string(collective), text);
  return text;
}

}  // namespace

WireHeader TeamImpl::header_of(const OperationImpl& operation, StepId id, std::int32_t segment) const {
  const Step& step = operation.program_->program->steps[id];
  WireHeader header;
  header.communicator = static_cast<std::uint32_t>(config_.id);
  header.sequence = operation.sequence_;
  header.segment = static_cast<std::uint32_t>(segment);
  header.round = static_cast<std::uint32_t>(step.round);
  header.lane = static_cast<std::uint16_t>(step.lane);
  header.stage = static_cast<std::uint16_t>(step.stage);
  header.sender = config_.rank;
  const auto tell = [&](const auto& call) {
    header.count = call.count | std::uint64_t{static_cast<std::uint32_t>(call.type) >> 8U} << kElementShift;
    header.type = static_cast<std::uint8_t>(call.type);
    header.op = static_cast<std::uint8_t>(call.op);
    header.collective = static_cast<std::uint8_t>(call.collective);
    header.detail = call.detail;
  };
  if (operation.args_.user_call) {
    tell(*operation.args_.user_call);
  } else {
    tell(operation.args_);
  }
  return header;
}

bool TeamImpl::verify(OperationImpl& operation, std::int32_t c, std::uint64_t number) {
  if (config_.phantom) return true;
  const InChannel& channel = in_[c];
  WireHeader header;
  std::memcpy(&header, payload(channel, number) - sizeof(WireHeader), sizeof(header));
  const Receive receive = receive_of(operation, c, number);
  const auto segment = static_cast<std::int32_t>(number - operation.in_base_[c] -
                                                 operation.layout_->first_message[receive.source]);
  const WireHeader expected = header_of(operation, receive.step, segment);
  if (header.magic == expected.magic && header.communicator == expected.communicator &&
      header.sequence == expected.sequence && header.count == expected.count &&
      header.type == expected.type && header.op == expected.op && header.collective == expected.collective &&
      header.detail == expected.detail && header.lane == expected.lane && header.stage == expected.stage &&
      header.round == expected.round && header.segment == expected.segment &&
      // A direct payload is valid only if this rank has granted access.
      ((header.flags & kDirect) == 0 ||
       (operation.granted_ && takes_direct(operation.program_->program->steps[receive.step])))) {
    return true;
  }
  operation.mismatched_ = true;
  Status status;
  status.code = Code::kMismatch;
  status.scope = Scope::kCommunicator;
  status.rank = channel.key.peer;
  const std::string mine = signature(expected);
  const std::string theirs = signature(header);
  if (header.magic != expected.magic || header.communicator != expected.communicator ||
      (header.flags & kDirect) != 0) {
    status.message =
        fmt::format("rank {} sent a message of another communicator or library version (magic {:#x})",
                    channel.key.peer, header.magic);
  } else if (mine != theirs) {
    status.message =
        fmt::format("{} #{}: rank {} called with {}, but rank {} with {}; all ranks must pass the same",
                    to_string(operation.args_.user_collective()), operation.number(), config_.rank, mine,
                    channel.key.peer, theirs);
  } else {
    status.message = fmt::format(
        "{} #{}: rank {} is in call #{} (lane {}, stage {}, round {}), but rank {} expects lane {}, "
        "stage "
        "{}, round {}; an earlier call did not match",
        to_string(operation.args_.user_collective()), operation.number(), channel.key.peer, header.sequence,
        header.lane, header.stage, header.round, config_.rank, expected.lane, expected.stage, expected.round);
  }
  report(std::move(status));
  return false;
}

void TeamImpl::report(Status status) {
  if (reported_ || failed()) return;
  if (config_.on_error) {
    config_.on_error(status);
  } else {
    fail(status);
  }
  reported_ = true;
}

void TeamImpl::fail(const Status& status) {
  {
    const std::lock_guard lock(control_mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    failure_ = kept(status);
    failed_.store(true, std::memory_order_release);
  }
  engine_.control_pending.store(true, std::memory_order_release);
  engine_.wake();
}

void TeamImpl::peer_left(Rank rank) {
  {
    const std::lock_guard lock(control_mutex_);
    newly_left_.push_back(rank);
  }
  engine_.control_pending.store(true, std::memory_order_release);
  engine_.wake();
}

void TeamImpl::on_control() {
  {
    const std::lock_guard lock(control_mutex_);
    for (const Rank rank : newly_left_) {
      if (rank >= 0 && rank < config_.size) left_[rank] = true;
    }
    any_left_ |= !newly_left_.empty();
    newly_left_.clear();
  }
  const std::vector<Posted> unacknowledged = std::exchange(unacknowledged_, {});
  for (const Posted& posted : unacknowledged) on_unacknowledged(posted);
  if (failed() && !ended_) {
    ended_by_failure_ = true;
    end_all(failure_);
  }
  take_handed_over();
}

void TeamImpl::on_exception(Status status) noexcept {
  try {
    status.rank = config_.rank;
    if (in_flight_.empty()) {
      status.message = fmt::format("rank {}: {}", config_.rank, status.message);
    } else {
      const OperationImpl& operation = *in_flight_.front();
      status.message = fmt::format("rank {}: {} in {} #{}", config_.rank, status.message,
                                   to_string(operation.args_.user_collective()), operation.number());
    }
  } catch (const std::bad_alloc&) {  // the short message has to do
  }
  try {
    report(status);  // the peers wait for this rank
  } catch (...) {    // they miss it, and ask
  }
  {
    const std::lock_guard lock(control_mutex_);
    if (!failed_.load(std::memory_order_relaxed)) {
      failure_ = std::move(status);
      failed_.store(true, std::memory_order_release);
    }
  }
  // What on_control() has not come to ends with the team, too.
  engine_.control_pending.store(true, std::memory_order_release);
  if (ended_) return;
  ended_by_failure_ = true;
  end_all(failure_);
}

void TeamImpl::check_left_peers() {
  if (reported_left_) return;
  for (const OperationImpl* operation : in_flight_) {
    for (const Rank rank : missing(*operation)) {
      if (!left_[rank]) continue;
      Status status;
      status.code = Code::kPeerLost;
      status.scope = Scope::kPeer;
      status.rank = rank;
      status.message = fmt::format("{} #{}: rank {} left without taking part in it; rank {} waits for {}",
                                   to_string(operation->args_.user_collective()), operation->number(), rank,
                                   config_.rank, missing_text(*operation));
      // The control plane knows that the rank has left in order. A later failure has to be reported.
      reported_left_ = true;
      if (config_.on_error && !failed()) {
        config_.on_error(status);
      } else {
        report(std::move(status));
      }
      return;
    }
  }
}

void TeamImpl::take_back_memory(const OperationImpl& operation) noexcept {
  if (config_.phantom || operation.layout_ == nullptr) return;
  const OperationArgs& args = operation.args_;
  const std::size_t bytes = args.count * size_of(args.type);
  for (auto& port : engine_.ports) {
    for (const std::byte* vector : {args.in, const_cast<const std::byte*>(args.out)})
      if (vector != nullptr && bytes > 0) port->transport->take_back({vector, bytes});
    if (!operation.scratch_.empty()) port->transport->take_back(operation.scratch_);
  }
}

void TeamImpl::end_all(const Status& status) {
  ended_ = true;
  engine_.drop_batched(this);
  for (const Posted& posted : unacknowledged_) on_lost(posted);
  unacknowledged_.clear();
  for (OperationImpl* operation : in_flight_) {
    for (auto& port : engine_.ports) port->queue.drop(operation);
    if (!operation->done()) take_back_memory(*operation);
    finish(*operation, status);
  }
  for (OutChannel& channel : out_) channel.operations.clear();
  drop_finished();
  credit_list_.clear();
}

// ---- Missing ranks -------------------------------------------------------------------------------------

// A peer is missing if one of its segments has not arrived, or if it returns no credit for a segment of ours
// that is ready to be sent.
std::vector<Rank> TeamImpl::missing(const OperationImpl& operation) const {
  std::vector<Rank> ranks;
  if (operation.done() || operation.layout_ == nullptr) return ranks;
  for (std::size_t c = 0; c < in_.size(); ++c) {
    const InChannel& channel = in_[c];
    const std::uint64_t end = operation.in_base_[c] + operation.layout_->in_totals[c];
    for (std::uint64_t number = std::max(operation.in_base_[c], channel.released); number < end; ++number) {
      if (channel.slots[number % channel.slots.size()] == InChannel::Slot::kEmpty ||
          number >= channel.released + channel.slots.size()) {
        ranks.push_back(channel.key.peer);
        break;
      }
    }
  }
  for (const OutChannel& channel : out_) {
    if (!channel.operations.empty() && channel.operations.front() == &operation && channel.credits == 0) {
      ranks.push_back(channel.key.peer);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::string TeamImpl::missing_text(const OperationImpl& operation) const {
  if (operation.done() || operation.layout_ == nullptr) return {};
  const Program& program = *operation.program_->program;
  for (std::size_t id = 0; id < program.steps.size(); ++id) {
    const Step& step = program.steps[id];
    const OperationImpl::StepState& state = operation.steps_[id];
    if (step.op == StepOp::kSend || state.next >= operation.layout_->steps[id].segments) continue;
    if (!dependencies_met(operation, static_cast<StepId>(id), state.next)) continue;
    for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
      const std::int32_t c = operation.program_->in_channel[s];
      if (c < 0) continue;
      const std::uint64_t number = operation.in_base_[c] + operation.layout_->first_message[s] +
                                   static_cast<std::uint64_t>(state.next);
      if (in_[c].arrived(number)) continue;
      const Source& source = program.sources[s];
      const std::string rail = source.rail == kNoRail ? "" : fmt::format(" over NIC {}", source.rail);
      const std::string level = step.level < 0 ? "" : fmt::format(", level {}", step.level);
      const std::int64_t num = operation.layout_->steps[id].segments;
      const std::string segment = num > 1 ? fmt::format(", segment {} of {}", state.next + 1, num) : "";
      return fmt::format("rank {}{} (lane {}, {} stage {}{}, round {}{})", source.peer, rail, step.lane,
                         step.phase == Phase::kScatter ? "scatter" : "gather", step.stage, level, step.round,
                         segment);
    }
  }
  for (const OutChannel& channel : out_) {
    if (!channel.operations.empty() && channel.operations.front() == &operation && channel.credits == 0)
      return fmt::format("rank {} to take what was sent (lane {})", channel.key.peer, channel.key.lane);
  }
  for (std::size_t id = 0; id < program.steps.size(); ++id) {
    const Step& step = program.steps[id];
    const OperationImpl::StepState& state = operation.steps_[id];
    if (step.op != StepOp::kSend || state.finished == state.next) continue;
    return fmt::format("rank {} to acknowledge what was sent (lane {}, stage {})", step.peer, step.lane,
                       step.stage);
  }
  return {};
}

std::vector<Rank> OperationImpl::waiting_for() const {
  return team_->missing(*this);
}
std::string OperationImpl::waiting_text() const {
  return team_->missing_text(*this);
}

}  // namespace hips::exec
