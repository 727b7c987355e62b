#include "lib/plan/steps/lane_program.hpp"

#include "lib/pattern/mesh.hpp"

namespace hips::plan {

LaneProgram::LaneProgram(std::int32_t lane, BlockIdx base, const std::vector<Position>& positions,
                         ProgramWriter& writer)
    : lane_(lane), positions_(positions), writer_(writer) {
  weight_.assign(positions.size() + 1, 1);
  for (std::size_t i = positions.size(); i-- > 0;) {
    weight_[i] = weight_[i + 1] * positions[i].leaders.num_leaders;
  }
  live_.push_back({base, weight_[0]});
  weight_.erase(weight_.begin());
  sent_.resize(positions.size());
  for (const Position& position : positions) {
    const std::int32_t i = num_active_++;
    if (!pattern::leads(position.leaders, position.index)) break;
    live_.push_back(piece(i, pattern::leader_index(position.leaders, position.index)));
  }
}

BlockRange LaneProgram::piece(std::int32_t position, std::int64_t leader_index) const {
  const std::int64_t weight = weight_[position];
  return {live_[position].first + leader_index * weight, weight};
}

BlockRange LaneProgram::owned() const {
  const bool leads_everywhere = live_.size() == positions_.size() + 1;
  return leads_everywhere ? live_.back() : BlockRange{};
}

void LaneProgram::emit_stage(std::int32_t stage) {
  const bool scatter = stage < num_positions();
  const std::int32_t position = scatter ? stage : num_stages() - 1 - stage;
  // A rank that sent its partial sums to leaders is idle until they answer.
  if (position >= num_active_ || positions_[position].size() == 1) return;
  if (scatter) {
    positions_[position].scatter == Pattern::kRing ? scatter_ring(position) : scatter_direct(position);
  } else {
    positions_[position].gather == Pattern::kRing ? gather_ring(position) : gather_direct(position);
  }
}

Step LaneProgram::step(StepOp op, Phase phase, std::int32_t position, std::int64_t round,
                       BlockRange dst) const {
  Step step;
  step.op = op;
  step.phase = phase;
  step.lane = lane_;
  step.stage = phase == Phase::kScatter ? position : num_stages() - 1 - position;
  step.level = positions_[position].level;
  step.round = static_cast<std::int32_t>(round);
  step.dst = {Buffer::kOutput, dst};
  return step;
}

StepId LaneProgram::send(Phase phase, std::int32_t position, std::int64_t round, std::int64_t to,
                         BlockRange blocks, ProgramWriter::After after) {
  const PeerLink link = positions_[position].link(to);
  Step send = step(StepOp::kSend, phase, position, round, blocks);
  send.peer = link.peer;
  send.rail = link.out;
  return writer_.add(send, {local(blocks)}, after);
}

void LaneProgram::scatter_direct(std::int32_t i) {
  const Position& position = positions_[i];
  const pattern::Mesh mesh{position.size()};
  const ProgramWriter::After ready = writer_.after(ready_);
  sent_[i].assign(position.leaders.num_leaders, -1);
  for (std::int64_t n = 1; n < mesh.size; ++n) {
    const std::int64_t to = pattern::peer(mesh, position.index, n);
    if (!pattern::leads(position.leaders, to)) continue;
    const std::int64_t u = pattern::leader_index(position.leaders, to);
    sent_[i][u] = send(Phase::kScatter, i, 0, to, piece(i, u), ready);
  }
  if (!pattern::leads(position.leaders, position.index)) return;

  // Reduces all arrivals and the own operand in one pass, by place in the group: the same order on every run.
  const BlockRange own = live_[i + 1];
  std::vector<Source> operands;
  operands.reserve(mesh.size);
  for (std::int64_t from = 0; from < mesh.size; ++from) {
    if (from == position.index) {
      operands.push_back(local(own));
    } else {
      const PeerLink link = position.link(from);
      operands.push_back({Source::Kind::kMessage, {}, link.peer, link.in});
    }
  }
  ready_ = {writer_.add(step(StepOp::kReduce, Phase::kScatter, i, 0, own), operands, ready)};
  current_ = Buffer::kOutput;
}

void LaneProgram::scatter_ring(std::int32_t i) {
  const Position& position = positions_[i];
  const pattern::Ring ring = position.ring();
  const PeerLink from = position.link(pattern::prev(ring, position.index));
  const ProgramWriter::After ready = writer_.after(ready_);
  sent_[i].assign(ring.size, -1);
  StepId reduced = -1;
  const Buffer operands = current_;
  for (std::int64_t round = 0; round < pattern::num_rounds(ring); ++round) {
    // Round 0 sends the own operand as it is, later rounds what the round before has reduced.
    const std::int64_t sends = pattern::scatter_sends(ring, position.index, round);
    current_ = round == 0 ? operands : Buffer::kOutput;
    sent_[i][sends] = send(Phase::kScatter, i, round, pattern::next(ring, position.index), piece(i, sends),
                           round == 0 ? ready : writer_.after({reduced}));
    const BlockRange takes = piece(i, pattern::scatter_receives(ring, position.index, round));
    current_ = operands;
    reduced = writer_.add(step(StepOp::kReduce, Phase::kScatter, i, round, takes),
                          {Source{Source::Kind::kMessage, {}, from.peer, from.in}, local(takes)}, ready);
  }
  ready_ = {reduced};
  current_ = Buffer::kOutput;
}

void LaneProgram::gather_direct(std::int32_t i) {
  const Position& position = positions_[i];
  const pattern::Mesh mesh{position.size()};
  if (pattern::leads(position.leaders, position.index)) {
    const ProgramWriter::After ready = writer_.after(ready_);
    for (std::int64_t n = 1; n < mesh.size; ++n) {
      send(Phase::kGather, i, 0, pattern::peer(mesh, position.index, n), live_[i + 1], ready);
    }
  } else {
    ready_.clear();
  }
  for (std::int64_t n = 1; n < mesh.size; ++n) {
    const std::int64_t from = pattern::source(mesh, position.index, n);
    if (!pattern::leads(position.leaders, from)) continue;
    const std::int64_t u = pattern::leader_index(position.leaders, from);
    const PeerLink link = position.link(from);
    // The copy overwrites what the scatter sent to the same member, so it waits for that send's completion.
    ready_.push_back(writer_.add(step(StepOp::kCopy, Phase::kGather, i, 0, piece(i, u)),
                                 {Source{Source::Kind::kMessage, {}, link.peer, link.in}},
                                 writer_.after({sent_[i][u]})));
  }
  current_ = Buffer::kOutput;
}

void LaneProgram::gather_ring(std::int32_t i) {
  const Position& position = positions_[i];
  const pattern::Ring ring = position.ring();
  const std::int64_t to = pattern::next(ring, position.index);
  const PeerLink from = position.link(pattern::prev(ring, position.index));
  const ProgramWriter::After ready = writer_.after(ready_);
  StepId copied = -1;
  for (std::int64_t round = 0; round < pattern::num_rounds(ring); ++round) {
    const BlockRange sends = piece(i, pattern::gather_sends(ring, position.index, round));
    send(Phase::kGather, i, round, to, sends, round == 0 ? ready : writer_.after({copied}));
    const std::int64_t takes = pattern::gather_receives(ring, position.index, round);
    copied = writer_.add(step(StepOp::kCopy, Phase::kGather, i, round, piece(i, takes)),
                         {Source{Source::Kind::kMessage, {}, from.peer, from.in}},
                         writer_.after({sent_[i][takes]}));
    ready_.push_back(copied);
  }
  current_ = Buffer::kOutput;
}

}  // namespace hips::plan
