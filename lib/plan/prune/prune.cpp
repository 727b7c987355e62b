#include "lib/plan/prune/prune.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/plan/prune/kept_steps.hpp"
#include "lib/plan/prune/owners.hpp"

namespace hips::plan {
namespace {

/// A step of any rank.
struct StepOfRank {
  Rank rank = -1;
  StepId step = -1;
};

/// The steps of all ranks in an order in which they can run, and the step that sends each message.
class PlanFlow {
 public:
  explicit PlanFlow(const Plan& plan) : sender_of_(plan.programs.size()) {
    using Message = std::tuple<Rank, Rank, std::int32_t, std::int32_t, std::int32_t>;
    std::map<Message, StepId> sends;
    for (const Program& program : plan.programs) {
      for (StepId id = 0; id < static_cast<StepId>(program.steps.size()); ++id) {
        const Step& step = program.steps[id];
        if (step.op == StepOp::kSend)
          sends[{program.rank, step.peer, step.lane, step.stage, step.round}] = id;
      }
    }
    std::size_t num_steps = 0;
    for (const Program& program : plan.programs) {
      auto& senders = sender_of_[program.rank];
      senders.resize(program.sources.size());
      num_steps += program.steps.size();
      for (const Step& step : program.steps) {
        for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
          const Source& source = program.sources[s];
          if (source.kind != Source::Kind::kMessage) continue;
          const auto sent = sends.find({source.peer, program.rank, step.lane, step.stage, step.round});
          if (sent != sends.end()) senders[s] = {source.peer, sent->second};
        }
      }
    }
    // A rank can run its steps one after the other; it waits for messages only.
    std::vector<StepId> next(plan.programs.size(), 0);
    for (bool progress = true; progress && order_.size() < num_steps;) {
      progress = false;
      for (const Program& program : plan.programs) {
        StepId& at = next[program.rank];
        for (; at < static_cast<StepId>(program.steps.size()) && has_arrived(program, at, next); ++at) {
          order_.push_back({program.rank, at});
          progress = true;
        }
      }
    }
    complete_ = order_.size() == num_steps;
  }

  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] const std::vector<StepOfRank>& order() const { return order_; }
  [[nodiscard]] StepOfRank sender_of(Rank rank, std::int32_t source) const {
    return sender_of_[rank][source];
  }

 private:
  [[nodiscard]] bool has_arrived(const Program& program, StepId id, const std::vector<StepId>& next) const {
    const Step& step = program.steps[id];
    for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
      if (program.sources[s].kind != Source::Kind::kMessage) continue;
      const StepOfRank sender = sender_of_[program.rank][s];
      if (sender.rank < 0 || next[sender.rank] <= sender.step) return false;
    }
    return true;
  }

  std::vector<std::vector<StepOfRank>> sender_of_;  ///< by rank and source
  std::vector<StepOfRank> order_;
  bool complete_ = false;
};

/// A mark for each block of each rank's output and scratch. Input counts as output: calls that need marks for
/// it are in place.
class Marks {
 public:
  explicit Marks(const Plan& plan)
      : num_blocks_(plan.shape.blocks.num_blocks),
        marks_(plan.programs.size(), std::vector<std::uint8_t>(static_cast<std::size_t>(
                                         num_blocks_ + plan.shape.blocks.num_scratch_blocks))) {}

  void set(Rank rank, const BufferRange& range, bool value) {
    std::fill_n(begin(rank, range), range.blocks.count, static_cast<std::uint8_t>(value));
  }
  [[nodiscard]] bool all(Rank rank, const BufferRange& range) {
    return std::all_of(begin(rank, range), begin(rank, range) + range.blocks.count, is_set);
  }
  [[nodiscard]] bool any(Rank rank, const BufferRange& range) {
    return std::any_of(begin(rank, range), begin(rank, range) + range.blocks.count, is_set);
  }

 private:
  static bool is_set(std::uint8_t mark) { return mark != 0; }
  std::vector<std::uint8_t>::iterator begin(Rank rank, const BufferRange& range) {
    return marks_[rank].begin() + (range.buffer == Buffer::kScratch ? num_blocks_ : 0) + range.blocks.first;
  }

  BlockIdx num_blocks_;
  std::vector<std::vector<std::uint8_t>> marks_;
};

class Pruner {
 public:
  Pruner(const Plan& plan, Collective collective, Rank root, std::vector<Rank> owners)
      : plan_(plan), collective_(collective), root_(root), owners_(std::move(owners)), flow_(plan) {
    for (const Program& program : plan.programs) {
      steps_.emplace_back(program);
      wanted_.emplace_back(program.steps.size(), false);
    }
  }

  Result<Plan> make() {
    if (!flow_.complete())
      return fail(Code::kInvalidArgument, "the plan cannot run: its steps wait for one another");
    if (only_moves(collective_)) {
      if (Status status = follow_values(); !status.ok()) return fail(status);
    }
    follow_demand();
    Plan made;
    made.shape = pruned_shape(plan_.shape, collective_, root_);
    for (const Program& program : plan_.programs)
      made.programs.push_back(without_others(program, steps_[program.rank], collective_));
    return made;
  }

 private:
  /// Calls `visit` with each block that a rank contributes, or must have in the end.
  template <typename Visit>
  void for_each_input(Visit&& visit) const {
    for (BlockIdx block = 0; block < plan_.shape.blocks.num_blocks; ++block)
      visit(collective_ == Collective::kBcast || collective_ == Collective::kScatter ? root_ : owners_[block],
            block);
  }
  [[nodiscard]] bool is_asked_for(Rank rank, BlockIdx block) const {
    switch (collective_) {
      case Collective::kReduce:
        return rank == root_;
      case Collective::kReduceScatter:
        return rank == owners_[block];
      case Collective::kBcast:
        return rank != root_;
      case Collective::kGather:
        return rank == root_ && rank != owners_[block];
      case Collective::kScatter:
        return rank == owners_[block] && rank != root_;
      default:
        return rank != owners_[block];
    }
  }
  template <typename Visit>
  void for_each_output(Visit&& visit) const {
    for (BlockIdx block = 0; block < plan_.shape.blocks.num_blocks; ++block) {
      for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) {
        if (is_asked_for(rank, block)) visit(rank, block);
      }
    }
  }

  /// Follows the values from the first step to the last. Drops a step without a value, and one whose result
  /// is there already.
  Status follow_values() {
    Marks held(plan_);
    for_each_input([&](Rank rank, BlockIdx block) { held.set(rank, {Buffer::kOutput, {block, 1}}, true); });
    for (const StepOfRank at : flow_.order()) {
      const Program& program = plan_.programs[at.rank];
      const Step& step = program.steps[at.step];
      if (step.op == StepOp::kSend) {
        const BufferRange& range = program.sources[step.first_source].local;
        if (!held.all(at.rank, range)) {
          if (held.any(at.rank, range)) return partial(at.rank, range);
          kept(at) = false;
        }
        continue;
      }
      kept(at) = false;
      const bool is_held = step.dst.buffer != Buffer::kScratch && held.all(at.rank, step.dst);
      for (std::int32_t s = step.first_source; !is_held && s < step.first_source + step.num_sources; ++s) {
        const Source& source = program.sources[s];
        const StepOfRank sender = flow_.sender_of(at.rank, s);
        const bool has_value =
            source.kind == Source::Kind::kLocal ? held.all(at.rank, source.local) : kept(sender);
        if (!has_value) continue;
        kept(at) = true;
        only_source(at) = s;
        break;
      }
      // A dropped step overwrites nothing: a block of the vector keeps the only value that it can have.
      // Scratch is reused.
      if (kept(at) || step.dst.buffer == Buffer::kScratch) held.set(at.rank, step.dst, kept(at));
    }
    Status status;
    for_each_output([&](Rank rank, BlockIdx block) {
      if (!held.all(rank, {Buffer::kOutput, {block, 1}}))
        status = partial(rank, {Buffer::kOutput, {block, 1}});
    });
    return status;
  }

  [[nodiscard]] Status partial(Rank rank, const BufferRange& range) const {
    return Status::error(Code::kUnsupported,
                         fmt::format("{} is not a part of {}: of blocks {}-{} rank {} would hold a part only",
                                     to_string(collective_), plan_.shape.algorithm, range.blocks.first,
                                     range.blocks.end() - 1, rank));
  }

  /// Follows the demand from the last step to the first. Drops a step whose result is not needed.
  void follow_demand() {
    Marks needed(plan_);
    for_each_output([&](Rank rank, BlockIdx block) {
      needed.set(rank, {Buffer::kOutput, {block, 1}}, true);
    });
    const std::vector<StepOfRank>& order = flow_.order();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      if (!kept(*at)) continue;
      const Program& program = plan_.programs[at->rank];
      const Step& step = program.steps[at->step];
      if (step.op == StepOp::kSend) {
        kept(*at) = wanted_[at->rank][at->step];
        if (wanted_[at->rank][at->step]) needed.set(at->rank, program.sources[step.first_source].local, true);
        continue;
      }
      if (!needed.any(at->rank, step.dst)) {
        kept(*at) = false;
        continue;
      }
      needed.set(at->rank, step.dst, false);
      for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
        if (only_source(*at) >= 0 && only_source(*at) != s) continue;
        const Source& source = program.sources[s];
        if (source.kind == Source::Kind::kLocal) {
          // The input has its values from the start.
          if (source.local.buffer != Buffer::kInput || only_moves(collective_))
            needed.set(at->rank, source.local, true);
          continue;
        }
        const StepOfRank sender = flow_.sender_of(at->rank, s);
        wanted_[sender.rank][sender.step] = true;
      }
    }
  }

  std::vector<bool>::reference kept(StepOfRank at) { return steps_[at.rank].kept[at.step]; }
  std::int32_t& only_source(StepOfRank at) { return steps_[at.rank].only_source[at.step]; }

  const Plan& plan_;
  Collective collective_;
  Rank root_;
  std::vector<Rank> owners_;  ///< by block; empty if not needed
  PlanFlow flow_;
  std::vector<KeptSteps> steps_;  ///< by rank
  std::vector<std::vector<bool>>
      wanted_;  ///< by rank and step: the message of a send has a receiver that needs it
};

}  // namespace

Result<Plan> prune(const Plan& plan, Collective collective, Rank root) {
  if (collective == Collective::kAllreduce || collective == Collective::kBarrier) return plan;
  if (Status status = check_root(plan.shape, collective, root); !status.ok()) return fail(std::move(status));
  std::vector<Rank> owner;
  if (has_sections(collective)) {
    auto found = owners(plan);
    if (!found) return fail(found.error());
    owner = *std::move(found);
  }
  return Pruner(plan, collective, root, std::move(owner)).make();
}

}  // namespace hips::plan
