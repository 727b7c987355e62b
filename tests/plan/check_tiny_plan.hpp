#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include <hips/plan.hpp>

namespace hips::tests {

inline BufferRange in(BlockIdx first, BlockIdx count = 1) {
  return {Buffer::kInput, {first, count}};
}
inline BufferRange out(BlockIdx first, BlockIdx count = 1) {
  return {Buffer::kOutput, {first, count}};
}
inline BufferRange scratch(BlockIdx first, BlockIdx count = 1) {
  return {Buffer::kScratch, {first, count}};
}

inline Source local(const BufferRange& range) {
  return {Source::Kind::kLocal, range};
}
inline Source from(Rank peer) {
  return {Source::Kind::kMessage, {}, peer, 0};
}

/// Builds plans by hand, one call per step.
class TinyPlan {
 public:
  TinyPlan(Rank num_ranks, BlockIdx num_blocks, std::int64_t num_scratch_blocks = 0) {
    plan_.shape.algorithm = "tiny";
    plan_.shape.num_ranks = num_ranks;
    plan_.shape.blocks = {{{{0, num_blocks}, {0, 1}, {1, 1}}}, num_blocks, num_scratch_blocks};
    plan_.shape.lanes.push_back({{0, num_blocks}, +1, {}});
    plan_.programs.resize(num_ranks);
    for (Rank rank = 0; rank < num_ranks; ++rank) plan_.programs[rank].rank = rank;
  }

  StepId send(Rank rank, Rank peer, std::int32_t stage, const BufferRange& range,
              std::vector<StepId> after = {}) {
    Step step = make(StepOp::kSend, stage, {Buffer::kOutput, range.blocks});
    step.peer = peer;
    step.rail = 0;
    return add(rank, step, {local(range)}, after);
  }
  StepId reduce(Rank rank, std::int32_t stage, const BufferRange& dst, std::vector<Source> sources,
                std::vector<StepId> after = {}) {
    return add(rank, make(StepOp::kReduce, stage, dst), std::move(sources), after);
  }
  StepId copy(Rank rank, std::int32_t stage, const BufferRange& dst, const Source& source,
              std::vector<StepId> after = {}) {
    return add(rank, make(StepOp::kCopy, stage, dst), {source}, after);
  }
  void own(Rank rank, BlockIdx first, BlockIdx count = 1) {
    plan_.programs[rank].owned.push_back({first, count});
  }

  [[nodiscard]] Plan take() { return std::move(plan_); }

 private:
  /// Stages 0 to 9 scatter, stages from 10 on gather.
  static Step make(StepOp op, std::int32_t stage, const BufferRange& dst) {
    Step step;
    step.op = op;
    step.phase = stage < 10 ? Phase::kScatter : Phase::kGather;
    step.stage = stage;
    step.dst = dst;
    return step;
  }

  StepId add(Rank rank, Step step, const std::vector<Source>& sources, const std::vector<StepId>& after) {
    Program& program = plan_.programs[rank];
    step.first_source = static_cast<std::int32_t>(program.sources.size());
    step.num_sources = static_cast<std::int32_t>(sources.size());
    step.first_dep = static_cast<std::int32_t>(program.deps.size());
    step.num_deps = static_cast<std::int32_t>(after.size());
    program.sources.insert(program.sources.end(), sources.begin(), sources.end());
    program.deps.insert(program.deps.end(), after.begin(), after.end());
    program.steps.push_back(step);
    return static_cast<StepId>(program.steps.size() - 1);
  }

  Plan plan_;
};

/// Two ranks, two blocks; rank r sums block r and sends it back. Steps of each rank:
///   0 send the other's block | 1 reduce the own block | 2 send the sum, after 1 | 3 copy the other's sum,
///   after 0
inline Plan pair_plan() {
  TinyPlan tiny(2, 2);
  for (Rank rank = 0; rank < 2; ++rank) {
    const Rank peer = 1 - rank;
    const StepId sent = tiny.send(rank, peer, 0, in(peer));
    const StepId sum = tiny.reduce(rank, 0, out(rank), {local(in(rank)), from(peer)});
    tiny.send(rank, peer, 10, out(rank), {sum});
    tiny.copy(rank, 10, out(peer), from(peer), {sent});
    tiny.own(rank, rank);
  }
  return tiny.take();
}

}  // namespace hips::tests
