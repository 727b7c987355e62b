#include "lib/plan/prune/owners.hpp"

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "lib/plan/builder.hpp"
#include "lib/plan/prunable.hpp"

namespace hips::plan {
namespace {

/// `owned(rank)` gives the blocks of each rank.
template <typename Owned>
Result<std::vector<Rank>> owners_of(const PlanShape& shape, Owned&& owned) {
  const auto no_sections = [&](const std::string& why) {
    return fail(Code::kUnsupported,
                fmt::format("{} does not give every rank a section of its own: {}", shape.algorithm, why));
  };
  std::vector<Rank> owner(static_cast<std::size_t>(shape.blocks.num_blocks), -1);
  for (Rank rank = 0; rank < shape.num_ranks; ++rank) {
    // A block may have no share of the vector, however long that is.
    constexpr std::int64_t kLong = std::int64_t{1} << 40;
    std::int64_t share = 0;
    for (const BlockRange& range : owned(rank)) {
      for (BlockIdx block = range.first; block < range.end(); ++block) {
        if (owner[block] >= 0)
          return no_sections(fmt::format("ranks {} and {} both own block {}", owner[block], rank, block));
        owner[block] = rank;
      }
      share += shape.blocks.elements(range, kLong);
    }
    if (share == 0) return no_sections(fmt::format("rank {} owns nothing", rank));
  }
  for (std::size_t block = 0; block < owner.size(); ++block) {
    if (owner[block] < 0) return no_sections(fmt::format("block {} has no owner", block));
  }
  return owner;
}

}  // namespace

Result<std::vector<Rank>> owners(const Plan& plan) {
  return owners_of(
      plan.shape, [&](Rank rank) -> const auto& { return plan.programs[rank].owned; });
}

Result<std::vector<Rank>> owners(const PlanBuilder& builder) {
  const auto* const prunable = dynamic_cast<const PrunableBuilder*>(&builder);
  if (prunable == nullptr) return owners(build_all(builder));
  return owners_of(builder.shape(), [&](Rank rank) { return prunable->owned(rank); });
}

}  // namespace hips::plan
