#pragma once

#include <cstdint>
#include <vector>

#include <hips/plan.hpp>

namespace hips::plan {

/// Gives `shape` one lane over all ranks and a block map of equal blocks.
void shape_one_lane(PlanShape& shape, std::int64_t num_blocks, std::vector<StageInfo> stages);

/// Makes `shape` that of a single rank: one lane of one block.
void shape_single(PlanShape& shape);

/// The program of a single rank: it copies its input to its output.
Program program_single();

}  // namespace hips::plan
