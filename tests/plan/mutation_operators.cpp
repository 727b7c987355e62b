#include "tests/plan/mutation_operators.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hips::tests {
namespace {

std::vector<Source> sources_of(const Program& program, const Step& step) {
  const auto sources = program.sources_of(step);
  return {sources.begin(), sources.end()};
}

void set_sources(Program& program, Step& step, const std::vector<Source>& sources) {
  step.first_source = static_cast<std::int32_t>(program.sources.size());
  step.num_sources = static_cast<std::int32_t>(sources.size());
  program.sources.insert(program.sources.end(), sources.begin(), sources.end());
}

void set_after(Program& program, Step& step, const std::vector<StepId>& after) {
  step.first_dep = static_cast<std::int32_t>(program.deps.size());
  step.num_deps = static_cast<std::int32_t>(after.size());
  program.deps.insert(program.deps.end(), after.begin(), after.end());
}

/// Renumbers all dependencies; those for which `renumber` says -1 are dropped.
template <typename Renumber>
void renumber_deps(Program& program, Renumber&& renumber) {
  for (Step& step : program.steps) {
    std::vector<StepId> after;
    for (const StepId dep : program.after(step)) {
      if (renumber(dep) >= 0) after.push_back(renumber(dep));
    }
    set_after(program, step, after);
  }
}

void drop_step(Program& program, StepId id) {
  renumber_deps(program, [&](StepId dep) { return dep == id ? -1 : dep > id ? dep - 1 : dep; });
  program.steps.erase(program.steps.begin() + id);
}

void swap_steps(Program& program, StepId a, StepId b) {
  renumber_deps(program, [&](StepId dep) { return dep == a ? b : dep == b ? a : dep; });
  std::swap(program.steps[a], program.steps[b]);
}

enum Kind : std::size_t {
  kPeer,
  kSourcePeer,
  kLane,
  kStage,
  kRound,
  kDropStep,
  kDropTransfer,
  kDoubleSource,
  kDropSource,
  kReplaceSource,
  kShiftRange,
  kResizeRange,
  kShiftTransfer,
  kResizeTransfer,
  kDropDependency,
  kDropDependencies,
  kMoveDependency,
  kBuffer,
  kSwapNeighbours,
  kSwapSteps,
  kSwapDestinations,
  kOperation,
  kRepeatStep,
  kNumKinds,
};

}  // namespace

const std::vector<std::string>& Mutator::kinds() {
  static const std::vector<std::string> kNames = {
      "change the peer of a send",
      "change the peer of a source",
      "change the lane",
      "change the stage",
      "change the round",
      "drop a step",
      "drop both ends of a transfer",
      "double a source",
      "drop a source",
      "replace a source by another of its program",
      "shift a range",
      "lengthen or shorten a range",
      "shift the blocks of a transfer at both ends",
      "lengthen or shorten a transfer at both ends",
      "drop a dependency",
      "drop all dependencies of a step",
      "wait for another step",
      "swap input, output and scratch",
      "swap a step with the next one",
      "swap two steps",
      "swap the destinations of two steps",
      "exchange reduce and copy",
      "repeat a step",
  };
  static_assert(kNumKinds == 23);
  return kNames;
}

Rank Mutator::other_rank(const Plan& plan, Rank rank) {
  const auto other = static_cast<Rank>(draw(plan.shape.num_ranks - 1));
  return other < rank ? other : other + 1;
}

Step* Mutator::other_end(Plan& plan, Rank rank, const Step& step) {
  const auto same_place = [&](const Step& candidate) {
    return candidate.lane == step.lane && candidate.stage == step.stage && candidate.round == step.round;
  };
  if (step.op == StepOp::kSend) {
    Program& peer = plan.programs[step.peer];
    for (Step& candidate : peer.steps) {
      if (candidate.op == StepOp::kSend || !same_place(candidate)) continue;
      for (const Source& source : peer.sources_of(candidate)) {
        if (source.kind == Source::Kind::kMessage && source.peer == rank) return &candidate;
      }
    }
    return nullptr;
  }
  for (const Source& source : plan.programs[rank].sources_of(step)) {
    if (source.kind != Source::Kind::kMessage) continue;
    for (Step& candidate : plan.programs[source.peer].steps) {
      if (candidate.op == StepOp::kSend && candidate.peer == rank && same_place(candidate)) return &candidate;
    }
  }
  return nullptr;
}

BufferRange& Mutator::any_range(Program& program, Step& step) {
  const std::int64_t pick = draw(step.num_sources + 1);
  if (pick < step.num_sources && program.sources[step.first_source + pick].kind == Source::Kind::kLocal) {
    return program.sources[step.first_source + pick].local;
  }
  return step.dst;
}

bool Mutator::mutate(Plan& plan, std::size_t kind) {
  const auto rank = static_cast<Rank>(draw(plan.shape.num_ranks));
  Program& program = plan.programs[rank];
  if (program.steps.empty()) return false;
  const auto num_steps = static_cast<StepId>(program.steps.size());
  const auto id = static_cast<StepId>(draw(num_steps));
  Step& step = program.steps[id];
  where_ = fmt::format("rank {}, step {}", rank, id);
  const BlockIdx num_blocks = plan.shape.blocks.num_blocks;
  const auto fits = [&](const BufferRange& range) {
    const BlockIdx size =
        range.buffer == Buffer::kScratch ? plan.shape.blocks.num_scratch_blocks : num_blocks;
    return range.blocks.first >= 0 && range.blocks.count > 0 && range.blocks.end() <= size;
  };

  switch (kind) {
    case kPeer:
      if (step.op != StepOp::kSend) return false;
      step.peer = other_rank(plan, rank);
      return true;
    case kSourcePeer: {
      if (step.op == StepOp::kSend) return false;
      Source& source = program.sources[step.first_source + draw(step.num_sources)];
      if (source.kind != Source::Kind::kMessage) return false;
      source.peer = other_rank(plan, rank);
      return true;
    }
    case kLane:
      if (plan.shape.lanes.size() < 2) return false;
      step.lane = static_cast<std::int32_t>(draw(static_cast<std::int64_t>(plan.shape.lanes.size())));
      return true;
    case kStage: {
      const auto num_stages = static_cast<std::int64_t>(plan.shape.lanes[step.lane].stages.size());
      if (num_stages < 2) return false;
      step.stage = static_cast<std::int32_t>(draw(num_stages));
      return true;
    }
    case kRound:
      step.round += static_cast<std::int32_t>(step.round > 0 && draw(2) == 0 ? -1 : 1);
      return true;
    case kDropStep:
      drop_step(program, id);
      return true;
    case kDropTransfer: {
      // Remove the send and the source that receives it: all other ends still match.
      if (step.op != StepOp::kSend) return false;
      Step* taker = other_end(plan, rank, step);
      if (taker == nullptr) return false;
      Program& peer = plan.programs[step.peer];
      std::vector<Source> sources = sources_of(peer, *taker);
      std::erase_if(sources, [&](const Source& source) {
        return source.kind == Source::Kind::kMessage && source.peer == rank;
      });
      if (sources.empty()) {
        drop_step(peer, static_cast<StepId>(taker - peer.steps.data()));
      } else {
        set_sources(peer, *taker, sources);
      }
      drop_step(program, id);
      return true;
    }
    case kDoubleSource: {
      if (step.op != StepOp::kReduce) return false;
      std::vector<Source> sources = sources_of(program, step);
      sources.push_back(sources[draw(step.num_sources)]);
      set_sources(program, step, sources);
      return true;
    }
    case kDropSource: {
      if (step.num_sources < 2) return false;
      std::vector<Source> sources = sources_of(program, step);
      sources.erase(sources.begin() + draw(step.num_sources));
      set_sources(program, step, sources);
      return true;
    }
    case kReplaceSource: {
      std::vector<Source> sources = sources_of(program, step);
      sources[draw(step.num_sources)] =
          program.sources[draw(static_cast<std::int64_t>(program.sources.size()))];
      set_sources(program, step, sources);
      return true;
    }
    case kShiftRange: {
      BufferRange& range = any_range(program, step);
      range.blocks.first += draw(2) == 0 ? -1 : 1;
      return fits(range);
    }
    case kResizeRange: {
      BufferRange& range = any_range(program, step);
      range.blocks.count += draw(2) == 0 ? -1 : 1;
      return fits(range);
    }
    case kShiftTransfer:
    case kResizeTransfer: {
      Step* other = other_end(plan, rank, step);
      if (other == nullptr) return false;
      const std::int64_t by = draw(2) == 0 ? -1 : 1;
      const auto change = [&](BufferRange& range) {
        (kind == kShiftTransfer ? range.blocks.first : range.blocks.count) += by;
        return fits(range);
      };
      const auto change_end = [&](Program& owner, Step& end) {
        bool all_fit = change(end.dst);
        for (std::int32_t i = end.first_source; i < end.first_source + end.num_sources; ++i) {
          Source& source = owner.sources[i];
          if (source.kind == Source::Kind::kLocal) all_fit = change(source.local) && all_fit;
        }
        return all_fit;
      };
      Program& peer =
          *std::find_if(plan.programs.begin(), plan.programs.end(), [&](const Program& candidate) {
            return other >= candidate.steps.data() && other < candidate.steps.data() + candidate.steps.size();
          });
      const bool here_fits = change_end(program, step);
      return change_end(peer, *other) && here_fits;
    }
    case kDropDependency: {
      if (step.num_deps == 0) return false;
      const auto deps = program.after(step);
      std::vector<StepId> after(deps.begin(), deps.end());
      after.erase(after.begin() + draw(step.num_deps));
      set_after(program, step, after);
      return true;
    }
    case kDropDependencies:
      if (step.num_deps == 0) return false;
      step.num_deps = 0;
      return true;
    case kMoveDependency: {
      if (step.num_deps == 0) return false;
      const auto deps = program.after(step);
      std::vector<StepId> after(deps.begin(), deps.end());
      after[draw(step.num_deps)] = static_cast<StepId>(draw(id));
      set_after(program, step, after);
      return true;
    }
    case kBuffer: {
      BufferRange& range = any_range(program, step);
      const bool has_scratch = plan.shape.blocks.num_scratch_blocks >= num_blocks;
      const Buffer before = range.buffer;
      range.buffer = static_cast<Buffer>(draw(has_scratch ? 3 : 2));
      return range.buffer != before && fits(range);
    }
    case kSwapNeighbours:
      if (id + 1 == num_steps) return false;
      swap_steps(program, id, id + 1);
      return true;
    case kSwapSteps: {
      const auto other = static_cast<StepId>(draw(num_steps));
      if (other == id) return false;
      swap_steps(program, id, other);
      return true;
    }
    case kSwapDestinations: {
      Step& other = program.steps[draw(num_steps)];
      if (other.dst == step.dst) return false;
      std::swap(step.dst, other.dst);
      return true;
    }
    case kOperation:
      if (step.op == StepOp::kSend) return false;
      step.op = step.op == StepOp::kReduce ? StepOp::kCopy : StepOp::kReduce;
      return true;
    case kRepeatStep: {
      Step copy = step;
      copy.round += 1000;
      set_sources(program, copy, sources_of(program, step));
      program.steps.push_back(copy);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace hips::tests
