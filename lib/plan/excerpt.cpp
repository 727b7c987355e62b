#include "lib/plan/excerpt.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "lib/plan/program_writer.hpp"

namespace hips::plan {
namespace {

/// A step of any rank.
struct Where {
  Rank rank = -1;
  StepId step = -1;
};

/// The steps of all ranks in an order in which they can run, and who sends what is taken.
class Flow {
 public:
  explicit Flow(const Plan& plan) : sender_of_(plan.programs.size()) {
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
    // Programs can run one step after the other, each rank waiting for messages only.
    std::vector<StepId> next(plan.programs.size(), 0);
    for (bool moved = true; moved && order_.size() < num_steps;) {
      moved = false;
      for (const Program& program : plan.programs) {
        StepId& at = next[program.rank];
        for (; at < static_cast<StepId>(program.steps.size()) && has_come(program, at, next); ++at) {
          order_.push_back({program.rank, at});
          moved = true;
        }
      }
    }
    complete_ = order_.size() == num_steps;
  }

  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] const std::vector<Where>& order() const { return order_; }
  [[nodiscard]] Where sender_of(Rank rank, std::int32_t source) const { return sender_of_[rank][source]; }

 private:
  [[nodiscard]] bool has_come(const Program& program, StepId id, const std::vector<StepId>& next) const {
    const Step& step = program.steps[id];
    for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
      if (program.sources[s].kind != Source::Kind::kMessage) continue;
      const Where sender = sender_of_[program.rank][s];
      if (sender.rank < 0 || next[sender.rank] <= sender.step) return false;
    }
    return true;
  }

  std::vector<std::vector<Where>> sender_of_;  ///< by rank and source
  std::vector<Where> order_;
  bool complete_ = false;
};

/// A mark for each block of each rank's output and scratch. Input counts as output: calls that need marks of
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

class Excerpt {
 public:
  Excerpt(const Plan& plan, Collective collective, Rank root, std::vector<Rank> owners)
      : plan_(plan), collective_(collective), root_(root), owners_(std::move(owners)), flow_(plan) {
    for (const Program& program : plan.programs) {
      kept_.emplace_back(program.steps.size(), true);
      wanted_.emplace_back(program.steps.size(), false);
      only_source_.emplace_back(program.steps.size(), -1);
    }
  }

  Result<Plan> make() {
    if (!flow_.complete())
      return fail(Code::kInvalidArgument, "the plan cannot run: its steps wait for one another");
    if (copies()) {
      if (Status status = follow_values(); !status.ok()) return fail(status);
    }
    follow_demand();
    Plan made;
    made.shape = plan_.shape;
    made.shape.description =
        fmt::format("{}{} of {}", to_string(collective_),
                    has_root(collective_) ? fmt::format(" (root {})", root_) : "", plan_.shape.description);
    for (const Program& program : plan_.programs) made.programs.push_back(program_of(program));
    return made;
  }

 private:
  /// Each block has one contribution only: nothing is folded.
  [[nodiscard]] bool copies() const {
    return collective_ == Collective::kBcast || collective_ == Collective::kAllgather;
  }
  /// Calls `visit` with each block that a rank contributes, or has to get.
  template <typename Visit>
  void for_each_given(Visit&& visit) const {
    for (BlockIdx block = 0; block < plan_.shape.blocks.num_blocks; ++block)
      visit(collective_ == Collective::kBcast ? root_ : owners_[block], block);
  }
  template <typename Visit>
  void for_each_demanded(Visit&& visit) const {
    for (BlockIdx block = 0; block < plan_.shape.blocks.num_blocks; ++block) {
      for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) {
        const bool asked = collective_ == Collective::kReduce          ? rank == root_
                           : collective_ == Collective::kReduceScatter ? rank == owners_[block]
                           : collective_ == Collective::kBcast         ? rank != root_
                                                                       : rank != owners_[block];
        if (asked) visit(rank, block);
      }
    }
  }

  /// Which values are there, from the first step to the last: a step without any is dropped, and so is one
  /// that brings what is there already.
  Status follow_values() {
    Marks held(plan_);
    for_each_given([&](Rank rank, BlockIdx block) { held.set(rank, {Buffer::kOutput, {block, 1}}, true); });
    for (const Where at : flow_.order()) {
      const Program& program = plan_.programs[at.rank];
      const Step& step = program.steps[at.step];
      if (step.op == StepOp::kSend) {
        const BufferRange& range = program.sources[step.first_source].local;
        if (!held.all(at.rank, range)) {
          if (held.any(at.rank, range)) return partial(at.rank, range);
          kept_[at.rank][at.step] = false;
        }
        continue;
      }
      kept_[at.rank][at.step] = false;
      const bool there = step.dst.buffer != Buffer::kScratch && held.all(at.rank, step.dst);
      for (std::int32_t s = step.first_source; !there && s < step.first_source + step.num_sources; ++s) {
        const Source& source = program.sources[s];
        const Where sender = flow_.sender_of(at.rank, s);
        const bool comes = source.kind == Source::Kind::kLocal ? held.all(at.rank, source.local)
                                                               : kept_[sender.rank][sender.step];
        if (!comes) continue;
        kept_[at.rank][at.step] = true;
        only_source_[at.rank][at.step] = s;
        break;
      }
      // What is dropped overwrites nothing: a block of the vector keeps the one value it can have. Scratch is
      // used for one thing after the other.
      if (kept_[at.rank][at.step] || step.dst.buffer == Buffer::kScratch)
        held.set(at.rank, step.dst, kept_[at.rank][at.step]);
    }
    Status status;
    for_each_demanded([&](Rank rank, BlockIdx block) {
      if (!held.all(rank, {Buffer::kOutput, {block, 1}}))
        status = partial(rank, {Buffer::kOutput, {block, 1}});
    });
    return status;
  }

  [[nodiscard]] Status partial(Rank rank, const BufferRange& range) const {
    return Status::error(Code::kUnsupported,
                         fmt::format("{} cannot be cut out of {}: of blocks {}-{} rank {} would hold a part",
                                     to_string(collective_), plan_.shape.algorithm, range.blocks.first,
                                     range.blocks.end() - 1, rank));
  }

  /// Which values lead to what was asked for, from the last step to the first.
  void follow_demand() {
    Marks needed(plan_);
    for_each_demanded([&](Rank rank, BlockIdx block) {
      needed.set(rank, {Buffer::kOutput, {block, 1}}, true);
    });
    const std::vector<Where>& order = flow_.order();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      if (!kept_[at->rank][at->step]) continue;
      const Program& program = plan_.programs[at->rank];
      const Step& step = program.steps[at->step];
      if (step.op == StepOp::kSend) {
        kept_[at->rank][at->step] = wanted_[at->rank][at->step];
        if (wanted_[at->rank][at->step]) needed.set(at->rank, program.sources[step.first_source].local, true);
        continue;
      }
      if (!needed.any(at->rank, step.dst)) {
        kept_[at->rank][at->step] = false;
        continue;
      }
      needed.set(at->rank, step.dst, false);
      for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
        if (only_source_[at->rank][at->step] >= 0 && only_source_[at->rank][at->step] != s) continue;
        const Source& source = program.sources[s];
        if (source.kind == Source::Kind::kLocal) {
          // The input is there from the beginning.
          if (source.local.buffer != Buffer::kInput || copies()) needed.set(at->rank, source.local, true);
          continue;
        }
        const Where sender = flow_.sender_of(at->rank, s);
        wanted_[sender.rank][sender.step] = true;
      }
    }
  }

  Program program_of(const Program& program) const {
    ProgramWriter writer(program.rank);
    const auto num_steps = static_cast<StepId>(program.steps.size());
    // What stands for a step in lists of dependencies: itself, or what it waited for.
    std::vector<std::vector<StepId>> stands_for(static_cast<std::size_t>(num_steps));
    for (StepId id = 0; id < num_steps; ++id) {
      Step step = program.steps[id];
      std::vector<StepId> after;
      for (const StepId dep : program.after(step))
        after.insert(after.end(), stands_for[dep].begin(), stands_for[dep].end());
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      if (!kept_[program.rank][id]) {
        stands_for[id] = std::move(after);
        continue;
      }
      auto sources = program.sources_of(step);
      if (const std::int32_t only = only_source_[program.rank][id]; only >= 0) {
        step.op = StepOp::kCopy;
        sources = sources.subspan(static_cast<std::size_t>(only - step.first_source), 1);
      }
      if (copies()) step.phase = Phase::kGather;
      stands_for[id] = {writer.add(step, sources, writer.after(after))};
    }
    if (has_sections(collective_)) {
      for (const BlockRange& range : program.owned) writer.own(range);
    }
    return writer.take();
  }

  const Plan& plan_;
  Collective collective_;
  Rank root_;
  std::vector<Rank> owners_;  ///< by block; empty where it does not matter
  Flow flow_;
  std::vector<std::vector<bool>> kept_, wanted_;  ///< by rank and step; a send is wanted by who takes it
  std::vector<std::vector<std::int32_t>> only_source_;  ///< of several sources the one that is there; -1: all
};

}  // namespace

Result<std::vector<Rank>> owners(const Plan& plan) {
  const auto none = [&](const std::string& what) {
    return fail(Code::kUnsupported, fmt::format("{} does not give every rank a section of its own: {}",
                                                plan.shape.algorithm, what));
  };
  std::vector<Rank> owner(static_cast<std::size_t>(plan.shape.blocks.num_blocks), -1);
  for (const Program& program : plan.programs) {
    for (const BlockRange& range : program.owned) {
      for (BlockIdx block = range.first; block < range.end(); ++block) {
        if (owner[block] >= 0)
          return none(fmt::format("ranks {} and {} both own block {}", owner[block], program.rank, block));
        owner[block] = program.rank;
      }
    }
    // A block may have no share of the vector.
    constexpr std::int64_t kLong = std::int64_t{1} << 40;
    std::int64_t share = 0;
    for (const BlockRange& range : program.owned) share += plan.shape.blocks.elements(range, kLong);
    if (share == 0) return none(fmt::format("rank {} owns nothing", program.rank));
  }
  for (std::size_t block = 0; block < owner.size(); ++block) {
    if (owner[block] < 0) return none(fmt::format("nobody owns block {}", block));
  }
  return owner;
}

Result<Plan> excerpt(const Plan& plan, Collective collective, Rank root) {
  if (collective == Collective::kAllreduce || collective == Collective::kBarrier) return plan;
  if (has_root(collective) && (root < 0 || root >= plan.shape.num_ranks)) {
    return fail(Code::kInvalidArgument, fmt::format("{}: root {} is none of ranks 0-{}",
                                                    to_string(collective), root, plan.shape.num_ranks - 1));
  }
  std::vector<Rank> owner;
  if (has_sections(collective)) {
    auto found = owners(plan);
    if (!found) return fail(found.error());
    owner = *std::move(found);
  }
  return Excerpt(plan, collective, root, std::move(owner)).make();
}

}  // namespace hips::plan
