#include "lib/plan/prune/kept_steps.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lib/plan/steps/program_writer.hpp"

namespace hips::plan {

Program without_others(const Program& program, const KeptSteps& steps, Collective collective) {
  ProgramWriter writer(program.rank);
  const auto num_steps = static_cast<StepId>(program.steps.size());
  // What replaces a step in lists of dependencies: itself, or the steps it waited for.
  std::vector<std::vector<StepId>> stands_for(static_cast<std::size_t>(num_steps));
  for (StepId id = 0; id < num_steps; ++id) {
    Step step = program.steps[id];
    std::vector<StepId> after;
    for (const StepId dep : program.after(step))
      after.insert(after.end(), stands_for[dep].begin(), stands_for[dep].end());
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    if (!steps.kept[id]) {
      stands_for[id] = std::move(after);
      continue;
    }
    auto sources = program.sources_of(step);
    if (const std::int32_t only = steps.only_source[id]; only >= 0) {
      step.op = StepOp::kCopy;
      sources = sources.subspan(static_cast<std::size_t>(only - step.first_source), 1);
    }
    if (only_moves(collective)) step.phase = Phase::kGather;
    stands_for[id] = {writer.add(step, sources, writer.after(after))};
  }
  if (has_sections(collective)) {
    for (const BlockRange& range : program.owned) writer.own(range);
  }
  return writer.take();
}

PlanShape pruned_shape(const PlanShape& shape, Collective collective, Rank root) {
  PlanShape pruned = shape;
  pruned.description =
      fmt::format("{}{} of {}", to_string(collective),
                  has_root(collective) ? fmt::format(" (root {})", root) : "", shape.description);
  return pruned;
}

Status check_root(const PlanShape& shape, Collective collective, Rank root) {
  if (!has_root(collective) || (root >= 0 && root < shape.num_ranks)) return Status::success();
  return Status::error(Code::kInvalidArgument, fmt::format("{}: root {} is out of range [0, {}]",
                                                           to_string(collective), root, shape.num_ranks - 1));
}

}  // namespace hips::plan
