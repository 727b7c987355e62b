#include "lib/plan/steps/tree_program.hpp"

#include <algorithm>

namespace hips::plan {
namespace {

/// The steps of one rank in one lane, a stage at a time.
class TreeLane {
 public:
  TreeLane(Rank rank, const TreePlace& place, ProgramWriter& writer)
      : rank_(rank), place_(place), writer_(writer), own_{place.blocks.first + place.local, 1} {}

  void emit(std::int32_t stage) {
    switch (tree_stage(stage, place_.num_local)) {
      case TreeStage::kLocalScatter:
        return local_scatter();
      case TreeStage::kUp:
        return up(stage);
      case TreeStage::kDown:
        return down(stage);
      case TreeStage::kLocalGather:
        return local_gather(stage);
    }
  }

  [[nodiscard]] BlockRange owned() const { return place_.parent ? BlockRange{} : own_; }

 private:
  [[nodiscard]] Step step(StepOp op, Phase phase, std::int32_t stage, BlockRange blocks) const {
    Step made;
    made.op = op;
    made.phase = phase;
    made.lane = place_.lane;
    made.stage = stage;
    made.level = -1;
    made.dst = {Buffer::kOutput, blocks};
    return made;
  }
  [[nodiscard]] static Source local(Buffer buffer, BlockRange blocks) {
    return {Source::Kind::kLocal, {buffer, blocks}};
  }
  [[nodiscard]] static Source message(const PeerLink& link) {
    return {Source::Kind::kMessage, {}, link.peer, link.in};
  }
  StepId send(Phase phase, std::int32_t stage, const PeerLink& link, Buffer from, BlockRange blocks,
              ProgramWriter::After after) {
    Step made = step(StepOp::kSend, phase, stage, blocks);
    made.peer = link.peer;
    made.rail = link.out;
    if (link.out == kNoRail && place_.num_local > 1) made.level = 0;
    return writer_.add(made, {local(from, blocks)}, after);
  }
  /// The rank of this server with local number `i`.
  [[nodiscard]] PeerLink neighbour(std::int64_t i) const {
    return {static_cast<Rank>(rank_ - place_.local + i), kNoRail, kNoRail};
  }
  [[nodiscard]] BlockRange block_of(std::int64_t i) const { return {place_.blocks.first + i, 1}; }

  void local_scatter() {
    std::vector<Source> sources;
    for (std::int64_t i = 0; i < place_.num_local; ++i) {
      if (i == place_.local) {
        sources.push_back(local(Buffer::kInput, own_));
        sent_.push_back(-1);
        continue;
      }
      sent_.push_back(send(Phase::kScatter, 0, neighbour(i), Buffer::kInput, block_of(i), {}));
      sources.push_back(message(neighbour(i)));
    }
    Step reduce = step(StepOp::kReduce, Phase::kScatter, 0, own_);
    reduce.level = 0;
    ready_ = writer_.after({writer_.add(reduce, sources, {})});
    current_ = Buffer::kOutput;
  }

  void up(std::int32_t stage) {
    if (!place_.children.empty()) {
      std::vector<Source> sources;
      bool has_own = false;
      for (const PeerLink& child : place_.children) {
        if (!has_own && child.peer > rank_) {
          sources.push_back(local(current_, own_));
          has_own = true;
        }
        sources.push_back(message(child));
      }
      if (!has_own) sources.push_back(local(current_, own_));
      ready_ =
          writer_.after({writer_.add(step(StepOp::kReduce, Phase::kScatter, stage, own_), sources, ready_)});
      current_ = Buffer::kOutput;
    }
    if (place_.parent) sent_up_ = send(Phase::kScatter, stage, *place_.parent, current_, own_, ready_);
  }

  void down(std::int32_t stage) {
    if (place_.parent) {
      // The result overwrites the partial sum, which must have been sent by then.
      ready_ = writer_.after({writer_.add(step(StepOp::kCopy, Phase::kGather, stage, own_),
                                          {message(*place_.parent)}, writer_.after({sent_up_}))});
    }
    for (const PeerLink& child : place_.children)
      send(Phase::kGather, stage, child, Buffer::kOutput, own_, ready_);
  }

  void local_gather(std::int32_t stage) {
    for (std::int64_t i = 0; i < place_.num_local; ++i) {
      if (i == place_.local) continue;
      send(Phase::kGather, stage, neighbour(i), Buffer::kOutput, own_, ready_);
      Step copy = step(StepOp::kCopy, Phase::kGather, stage, block_of(i));
      copy.level = 0;
      writer_.add(copy, {message(neighbour(i))}, writer_.after({sent_[static_cast<std::size_t>(i)]}));
    }
  }

  Rank rank_;
  const TreePlace& place_;
  ProgramWriter& writer_;
  BlockRange own_;
  Buffer current_ = Buffer::kInput;
  ProgramWriter::After ready_;  ///< the step that makes the current value
  StepId sent_up_ = -1;
  std::vector<StepId> sent_;  ///< by local rank: the send of its block of the input
};

}  // namespace

std::vector<StageInfo> tree_stages(std::int64_t num_local) {
  const auto local = static_cast<std::int32_t>(num_local);
  std::vector<StageInfo> stages = {{Phase::kScatter, -1, Pattern::kPs, 1},
                                   {Phase::kGather, -1, Pattern::kPs, 1}};
  if (num_local == 1) return stages;
  stages.insert(stages.begin(), {Phase::kScatter, 0, Pattern::kMesh, local});
  stages.push_back({Phase::kGather, 0, Pattern::kMesh, local});
  return stages;
}

std::int32_t tree_steps(std::int64_t depth, std::int64_t num_local) {
  return static_cast<std::int32_t>(2 * depth + (num_local > 1 ? 2 : 0));
}

void emit_trees(Rank rank, const std::vector<TreePlace>& places, ProgramWriter& writer) {
  std::vector<TreeLane> lanes;
  lanes.reserve(places.size());
  for (const TreePlace& place : places) lanes.emplace_back(rank, place, writer);
  const std::size_t num_stages = places.empty() ? 0 : tree_stages(places.front().num_local).size();
  for (std::size_t stage = 0; stage < num_stages; ++stage) {
    for (TreeLane& lane : lanes) lane.emit(static_cast<std::int32_t>(stage));
  }
  for (const TreeLane& lane : lanes) writer.own(lane.owned());
}

}  // namespace hips::plan
