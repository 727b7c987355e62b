#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hips/plan.hpp>

#include "lib/base/collective.hpp"

namespace hips::plan {

/// Which steps of a rank's program a collective needs.
struct KeptSteps {
  explicit KeptSteps(const Program& program)
      : kept(program.steps.size(), true), only_source(program.steps.size(), -1) {}

  std::vector<bool> kept;                 ///< by step
  std::vector<std::int32_t> only_source;  ///< the only source of a step that has a value; -1: all have one
};

/// The program without the steps that are not kept. A step that waited for one of these waits for what that
/// waited for.
Program without_others(const Program& program, const KeptSteps& steps, Collective collective);

/// What the ranks of a pruned plan have in common.
PlanShape pruned_shape(const PlanShape& shape, Collective collective, Rank root);

/// Errors   kInvalidArgument: the collective has a root, and `root` is not a rank.
Status check_root(const PlanShape& shape, Collective collective, Rank root);

}  // namespace hips::plan
