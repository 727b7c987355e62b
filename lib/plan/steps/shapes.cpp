#include "lib/plan/steps/shapes.hpp"

#include <utility>

#include "lib/plan/steps/program_writer.hpp"

namespace hips::plan {

void shape_one_lane(PlanShape& shape, std::int64_t num_blocks, std::vector<StageInfo> stages) {
  shape.blocks.parts = {{{0, num_blocks}, {0, 1}, {1, 1}}};
  shape.blocks.num_blocks = num_blocks;
  shape.lanes = {{{0, num_blocks}, +1, std::move(stages)}};
}

void shape_single(PlanShape& shape) {
  shape.num_ranks = 1;
  shape.num_steps = 0;
  shape.neighbours_only = true;
  shape_one_lane(shape, 1, {});
}

Program program_single() {
  ProgramWriter writer(0);
  Step copy;
  copy.op = StepOp::kCopy;
  copy.phase = Phase::kGather;
  copy.level = -1;
  copy.dst = {Buffer::kOutput, {0, 1}};
  writer.add(copy, {Source{Source::Kind::kLocal, {Buffer::kInput, {0, 1}}}}, {});
  writer.own({0, 1});
  return writer.take();
}

}  // namespace hips::plan
