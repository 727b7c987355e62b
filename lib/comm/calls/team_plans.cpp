#include "lib/comm/calls/team_plans.hpp"

#include <algorithm>
#include <utility>

#include "lib/plan/builder.hpp"
#include "lib/plan/check/check.hpp"
#include "lib/plan/prune/owners.hpp"
#include "lib/plan/prune/prune.hpp"
#include "lib/plan/prune/pruned_program.hpp"

namespace hips::comm {
namespace {

constexpr std::size_t kMostArrangements = 16;
/// Number of steps of all ranks together; takes a few megabytes.
constexpr std::size_t kMostStepsKept = 1U << 16U;

}  // namespace

std::size_t TeamPlans::choice_for(std::uint64_t bytes) const {
  std::size_t choice = 0;
  while (choice + 1 < choices_.size() && choices_[choice].up_to_bytes < bytes) ++choice;
  return choice;
}

Result<TeamPlans::Use> TeamPlans::of(const CallArgs& args, exec::Team& team) {
  const std::uint64_t bytes = args.count * size_of(args.type);
  Key key{choice_for(bytes), args.collective, has_root(args.collective) ? args.root : 0};
  if (key.collective == Collective::kAllreduce || key.collective == Collective::kBarrier)
    return Use{static_cast<std::int32_t>(key.choice), nullptr};
  const Use by_allreduce{static_cast<std::int32_t>(key.choice), nullptr, true};
  Use use;
  if (has_sections(args.collective)) {
    while (key.choice < choices_.size() && owners_of(key.choice).empty()) ++key.choice;
    if (key.choice == choices_.size()) return by_allreduce;
    use.arrangement = arrangement_of(key.choice, *args.sections);
  }
  auto program = program_of(key, team);
  if (!program && program.error().code == Code::kUnsupported) return by_allreduce;
  if (!program) return fail(program.error());
  use.program = *program;
  return use;
}

Result<std::int32_t> TeamPlans::program_of(const Key& key, exec::Team& team) {
  if (const auto known = programs_.find(key); known != programs_.end()) return known->second;
  if (unsupported_.contains(key)) return fail(Code::kUnsupported, "pruning this plan has failed before");
  const Design::Choice& choice = choices_[key.choice];
  auto made = choice.stored ? pruned_stored(key)
                            : plan::pruned_program(*choice.builder, key.collective, key.root, rank_);
  if (!made) {
    if (made.error().code == Code::kUnsupported) unsupported_.insert(key);
    return fail(made.error());
  }
  auto shape = std::make_shared<const PlanShape>(plan::pruned_shape(*choice.shape, key.collective, key.root));
  auto program = std::make_shared<const Program>(*std::move(made));
  const std::int32_t index = team.add_program(std::move(shape), std::move(program));
  programs_.emplace(key, index);
  return index;
}

Result<Program> TeamPlans::pruned_stored(const Key& key) {
  auto made = plan::prune(*whole(key.choice), key.collective, key.root);
  if (!made) return fail(made.error());
  // The tests check the pruned plans of the built-in builders. Another plan may rely on an order that came from
  // messages which pruning has removed.
  if (!plan::check(*made, {.collective = key.collective, .root = key.root}).ok())
    return fail(Code::kUnsupported, "the pruned plan fails the check");
  return std::move(made->programs[static_cast<std::size_t>(rank_)]);
}

std::shared_ptr<const Plan> TeamPlans::whole(std::size_t choice) {
  if (const auto known = small_wholes_.find(choice); known != small_wholes_.end()) return known->second;
  auto built = std::make_shared<const Plan>(plan::build_all(*choices_[choice].builder));
  std::size_t steps = 0;
  for (const Program& program : built->programs) steps += program.steps.size();
  if (steps <= kMostStepsKept) small_wholes_.emplace(choice, built);
  return built;
}

const std::vector<Rank>& TeamPlans::owners_of(std::size_t choice) {
  if (const auto known = owners_.find(choice); known != owners_.end()) return known->second;
  auto owners = plan::owners(*choices_[choice].builder);
  return owners_.emplace(choice, owners ? *std::move(owners) : std::vector<Rank>()).first->second;
}

std::shared_ptr<const Arrangement> TeamPlans::arrangement_of(std::size_t choice, const Sections& sections) {
  const auto known = std::find_if(arrangements_.begin(), arrangements_.end(), [&](const Known& one) {
    return one.choice == choice && one.sections.digest() == sections.digest() &&
           one.sections.same_counts(sections);
  });
  if (known != arrangements_.end()) {
    std::rotate(arrangements_.begin(), known, known + 1);
    return arrangements_.front().arrangement;
  }
  if (arrangements_.size() == kMostArrangements) arrangements_.pop_back();
  auto made = std::make_shared<const Arrangement>(
      Arrangement::of(choices_[choice].shape->blocks, owners_of(choice), sections));
  arrangements_.insert(arrangements_.begin(), Known{choice, sections, made});
  return made;
}

}  // namespace hips::comm
