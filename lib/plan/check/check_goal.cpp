#include "lib/plan/check/check_goal.hpp"

namespace hips::plan {

CheckGoal::CheckGoal(const Plan& plan, const CheckOptions& options)
    : collective_(options.collective),
      root_(options.root),
      owner_(static_cast<std::size_t>(plan.shape.blocks.num_blocks), -1) {
  for (const Program& program : plan.programs) {
    for (const BlockRange& range : program.owned) {
      for (BlockIdx block = range.first; block < range.end(); ++block) owner_[block] = program.rank;
    }
  }
}

}  // namespace hips::plan
