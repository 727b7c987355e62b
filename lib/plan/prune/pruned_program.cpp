#include "lib/plan/prune/pruned_program.hpp"

#include <utility>

#include "lib/plan/builder.hpp"
#include "lib/plan/prunable.hpp"
#include "lib/plan/prune/block_set.hpp"
#include "lib/plan/prune/owners.hpp"
#include "lib/plan/prune/prune.hpp"

namespace hips::plan {
namespace {

/// Follows values and demand through the program of one rank as prune() does for all ranks. Which messages
/// are sent comes from the builder.
class RankPruner {
 public:
  RankPruner(const PrunableBuilder& builder, Collective collective, Rank root, Rank rank)
      : builder_(builder),
        collective_(collective),
        root_(root),
        program_(builder.program(rank)),
        num_blocks_(builder.shape().blocks.num_blocks),
        steps_(program_) {}

  Program make() {
    if (only_moves(collective_)) follow_values();
    follow_demand();
    return without_others(program_, steps_, collective_);
  }

 private:
  [[nodiscard]] bool is_sent(Rank from, Rank to, const Step& step) const {
    const MessageName message{
        .from = from, .to = to, .lane = step.lane, .stage = step.stage, .round = step.round};
    switch (collective_) {
      case Collective::kBcast:
        return builder_.kept_in_bcast(message, root_);
      case Collective::kReduce:
        return builder_.kept_in_reduce(message, root_);
      case Collective::kReduceScatter:
        return step.phase == Phase::kScatter;
      case Collective::kAllgather:
        return step.phase == Phase::kGather;
      case Collective::kGather:
        return step.phase == Phase::kGather && builder_.kept_in_reduce(message, root_);
      case Collective::kScatter:
        return step.phase == Phase::kScatter && builder_.kept_in_bcast(message, root_);
      default:
        return true;
    }
  }
  [[nodiscard]] bool arrives(const Source& source, const Step& step) const {
    return is_sent(source.peer, program_.rank, step);
  }

  /// Input counts as output: what only moves data works in place. Scratch blocks come behind those of the
  /// vector.
  [[nodiscard]] BlockRange key(const BufferRange& range) const {
    return {range.blocks.first + (range.buffer == Buffer::kScratch ? num_blocks_ : 0), range.blocks.count};
  }

  void follow_values() {
    BlockSet held;
    if (collective_ == Collective::kAllgather || collective_ == Collective::kGather) {
      for (const BlockRange& range : program_.owned) held.insert(range);
    } else if (program_.rank == root_) {
      held.insert({0, num_blocks_});
    }
    for (std::size_t id = 0; id < program_.steps.size(); ++id) {
      const Step& step = program_.steps[id];
      if (step.op == StepOp::kSend) {
        steps_.kept[id] = is_sent(program_.rank, step.peer, step);
        continue;
      }
      steps_.kept[id] = false;
      const bool is_held = step.dst.buffer != Buffer::kScratch && held.has_all(key(step.dst));
      for (std::int32_t s = step.first_source; !is_held && s < step.first_source + step.num_sources; ++s) {
        const Source& source = program_.sources[s];
        const bool has_value =
            source.kind == Source::Kind::kLocal ? held.has_all(key(source.local)) : arrives(source, step);
        if (!has_value) continue;
        steps_.kept[id] = true;
        steps_.only_source[id] = s;
        break;
      }
      if (steps_.kept[id]) held.insert(key(step.dst));
      if (!steps_.kept[id] && step.dst.buffer == Buffer::kScratch) held.erase(key(step.dst));
    }
  }

  void follow_demand() {
    BlockSet needed;
    demand(needed);
    for (std::size_t id = program_.steps.size(); id-- > 0;) {
      if (!steps_.kept[id]) continue;
      const Step& step = program_.steps[id];
      if (step.op == StepOp::kSend) {
        steps_.kept[id] = is_sent(program_.rank, step.peer, step);
        if (steps_.kept[id]) needed.insert(key(program_.sources[step.first_source].local));
        continue;
      }
      steps_.kept[id] = needed.has_any(key(step.dst));
      if (!steps_.kept[id]) continue;
      needed.erase(key(step.dst));
      for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
        if (steps_.only_source[id] >= 0 && steps_.only_source[id] != s) continue;
        const Source& source = program_.sources[s];
        if (source.kind != Source::Kind::kLocal) continue;
        // The input has its values from the start.
        if (source.local.buffer != Buffer::kInput || only_moves(collective_))
          needed.insert(key(source.local));
      }
    }
  }

  /// The blocks that the rank must have in the end and does not have from the start.
  void demand(BlockSet& needed) const {
    const bool is_root = program_.rank == root_;
    const bool all = collective_ == Collective::kAllgather ||
                     (collective_ == Collective::kBcast && !is_root) ||
                     ((collective_ == Collective::kReduce || collective_ == Collective::kGather) && is_root);
    const bool own =
        collective_ == Collective::kReduceScatter || (collective_ == Collective::kScatter && !is_root);
    if (all) needed.insert({0, num_blocks_});
    for (const BlockRange& range : program_.owned) {
      if (collective_ == Collective::kAllgather || collective_ == Collective::kGather) needed.erase(range);
      if (own) needed.insert(range);
    }
  }

  const PrunableBuilder& builder_;
  Collective collective_;
  Rank root_;
  Program program_;
  BlockIdx num_blocks_;
  KeptSteps steps_;
};

}  // namespace

Result<Program> pruned_program(const PlanBuilder& builder, Collective collective, Rank root, Rank rank) {
  if (collective == Collective::kAllreduce || collective == Collective::kBarrier)
    return builder.program(rank);
  if (Status status = check_root(builder.shape(), collective, root); !status.ok())
    return fail(std::move(status));
  const auto* const prunable = dynamic_cast<const PrunableBuilder*>(&builder);
  if (prunable == nullptr) {
    auto pruned = prune(build_all(builder), collective, root);
    if (!pruned) return fail(pruned.error());
    return std::move(pruned->programs[static_cast<std::size_t>(rank)]);
  }
  if (has_sections(collective)) {
    if (const auto all_own = owners(builder); !all_own) return fail(all_own.error());
  }
  return RankPruner(*prunable, collective, root, rank).make();
}

}  // namespace hips::plan
