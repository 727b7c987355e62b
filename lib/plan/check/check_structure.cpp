#include "lib/plan/check/check_structure.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lib/plan/check/check.hpp"
#include "lib/plan/wide.hpp"

namespace hips::plan {
namespace {

/// Finer shares would overflow the arithmetic of block boundaries.
constexpr std::int64_t kMaxDenominator = std::int64_t{1} << 40;

using Problem = std::optional<std::string>;

Problem problem_of(const Fraction& share, std::size_t part, const char* end) {
  if (share.den < 1 || share.den > kMaxDenominator || share.num < 0 || share.num > share.den) {
    return fmt::format(
        "block map: part {} has the invalid {} {}/{} (valid: 0 <= num/den <= 1 with den up to 2^40)", part,
        end, share.num, share.den);
  }
  return {};
}

bool less(const Fraction& a, const Fraction& b) {
  return static_cast<Int128>(a.num) * b.den < static_cast<Int128>(b.num) * a.den;
}

Problem problem_of(const BlockMap& map, std::int64_t max_blocks) {
  if (map.num_blocks < 1 || map.num_blocks > max_blocks) {
    return fmt::format("block map: invalid number of blocks {} (valid: 1 to {})", map.num_blocks, max_blocks);
  }
  if (map.num_scratch_blocks < 0 || map.num_scratch_blocks > max_blocks) {
    return fmt::format("block map: invalid number of scratch blocks {} (valid: 0 to {})",
                       map.num_scratch_blocks, max_blocks);
  }
  if (map.parts.empty()) return "block map: no part; at least one must cover the vector";
  BlockIdx next_block = 0;
  Fraction next_share{0, 1};
  for (std::size_t i = 0; i < map.parts.size(); ++i) {
    const BlockMap::Part& part = map.parts[i];
    if (Problem problem = problem_of(part.begin, i, "begin")) return problem;
    if (Problem problem = problem_of(part.end, i, "end")) return problem;
    if (part.blocks.first != next_block || part.blocks.count < 1 ||
        part.blocks.count > map.num_blocks - next_block) {
      return fmt::format(
          "block map: part {} has {} blocks from block {}; it must begin at block {} and end by {}", i,
          part.blocks.count, part.blocks.first, next_block, map.num_blocks);
    }
    if (less(part.begin, next_share) || less(next_share, part.begin) || less(part.end, part.begin)) {
      return fmt::format("block map: part {} is the share {}/{} to {}/{}; it must begin at {}/{} and ascend",
                         i, part.begin.num, part.begin.den, part.end.num, part.end.den, next_share.num,
                         next_share.den);
    }
    next_block = part.blocks.end();
    next_share = part.end;
  }
  if (next_block != map.num_blocks || less(next_share, {1, 1})) {
    return fmt::format(
        "block map: the parts end at block {} of {} and at the share {}/{}; they must cover all", next_block,
        map.num_blocks, next_share.num, next_share.den);
  }
  return {};
}

/// Checks the program of one rank. A step's problem is a sentence without the step's name.
class ProgramCheck {
 public:
  ProgramCheck(const Plan& plan, Rank rank)
      : shape_(plan.shape), program_(plan.programs[rank]), rank_(rank), taken_(program_.sources.size()) {}

  [[nodiscard]] Problem problem_of_owned() const {
    BlockIdx next = 0;
    for (const BlockRange& range : program_.owned) {
      if (range.first < next || range.count < 1 || range.count > shape_.blocks.num_blocks - range.first) {
        return fmt::format("owns {} blocks from block {}; owned ranges must ascend inside blocks 0-{}",
                           range.count, range.first, shape_.blocks.num_blocks - 1);
      }
      next = range.end();
    }
    return {};
  }

  [[nodiscard]] Problem problem_of_step(StepId id) {
    const Step& step = program_.steps[id];
    if (Problem problem = problem_of_tables(step, id)) return problem;
    if (Problem problem = problem_of_position(step)) return problem;
    if (Problem problem = problem_of_range(step.dst, "destination")) return problem;
    if (step.op == StepOp::kSend) {
      if (Problem problem = problem_of_peer(step.peer, "sends to")) return problem;
    } else if (step.dst.buffer == Buffer::kInput) {
      return "writes the input, which belongs to the caller";
    }
    for (std::int32_t i = step.first_source; i < step.first_source + step.num_sources; ++i) {
      if (Problem problem = problem_of_source(step, program_.sources[i])) return problem;
      // A message is named by its receiving step, so an entry cannot belong to two steps.
      if (taken_[i]) return fmt::format("shares source {} of its program with an earlier step", i);
      taken_[i] = true;
    }
    return {};
  }

 private:
  [[nodiscard]] Problem problem_of_tables(const Step& step, StepId id) const {
    if (step.op != StepOp::kSend && step.op != StepOp::kReduce && step.op != StepOp::kCopy) {
      return fmt::format("has the unknown operation {}", static_cast<int>(step.op));
    }
    const auto inside = [](std::int32_t first, std::int32_t count, std::size_t size) {
      return first >= 0 && count >= 0 &&
             static_cast<std::size_t>(first) + static_cast<std::size_t>(count) <= size;
    };
    if (!inside(step.first_source, step.num_sources, program_.sources.size())) {
      return fmt::format("has {} sources from number {} of the {} in its program", step.num_sources,
                         step.first_source, program_.sources.size());
    }
    if (!inside(step.first_dep, step.num_deps, program_.deps.size())) {
      return fmt::format("has {} dependencies from number {} of the {} in its program", step.num_deps,
                         step.first_dep, program_.deps.size());
    }
    if (step.num_sources < 1 || (step.op != StepOp::kReduce && step.num_sources != 1)) {
      return fmt::format("has {} sources (valid: 1 for a send or copy, 1 or more for a reduction)",
                         step.num_sources);
    }
    for (StepId dep : program_.after(step)) {
      if (dep < 0 || dep >= id)
        return fmt::format("comes after step {}; a step can only wait for earlier ones", dep);
    }
    return {};
  }

  [[nodiscard]] Problem problem_of_position(const Step& step) const {
    if (step.lane < 0 || static_cast<std::size_t>(step.lane) >= shape_.lanes.size()) {
      return fmt::format("has the invalid lane {}; the plan has {} lanes", step.lane, shape_.lanes.size());
    }
    const std::size_t num_stages = shape_.lanes[step.lane].stages.size();
    if (step.stage < 0 || (num_stages > 0 && static_cast<std::size_t>(step.stage) >= num_stages)) {
      return fmt::format("has the invalid stage {}; its lane has {} stages", step.stage, num_stages);
    }
    if (step.round < 0) return fmt::format("has the invalid round {}", step.round);
    if (step.phase != Phase::kScatter && step.phase != Phase::kGather) {
      return fmt::format("has the unknown phase {}", static_cast<int>(step.phase));
    }
    return {};
  }

  [[nodiscard]] Problem problem_of_peer(Rank peer, const char* verb) const {
    if (peer < 0 || peer >= shape_.num_ranks) {
      return fmt::format("{} rank {}, which is out of range [0, {}]", verb, peer, shape_.num_ranks - 1);
    }
    if (peer == rank_) return fmt::format("{} itself", verb);
    return {};
  }

  [[nodiscard]] Problem problem_of_range(const BufferRange& range, const char* role) const {
    if (range.buffer != Buffer::kInput && range.buffer != Buffer::kOutput &&
        range.buffer != Buffer::kScratch) {
      return fmt::format("has a {} in the unknown buffer {}", role, static_cast<int>(range.buffer));
    }
    const bool scratch = range.buffer == Buffer::kScratch;
    const BlockIdx size = scratch ? shape_.blocks.num_scratch_blocks : shape_.blocks.num_blocks;
    const BlockRange& blocks = range.blocks;
    if (blocks.first < 0 || blocks.count < 1 || blocks.first > size || blocks.count > size - blocks.first) {
      return fmt::format("has a {} of {} blocks from block {}; the plan has {}{} blocks", role, blocks.count,
                         blocks.first, size, scratch ? " scratch" : "");
    }
    // Only scratch can be longer than the vector; a range must not wrap around in it.
    if (blocks.first % shape_.blocks.num_blocks + blocks.count > shape_.blocks.num_blocks) {
      return fmt::format(
          "has a {} of scratch blocks {}-{}, which crosses a multiple of {}, where the next copy of the "
          "vector begins",
          role, blocks.first, blocks.end() - 1, shape_.blocks.num_blocks);
    }
    return {};
  }

  [[nodiscard]] Problem problem_of_source(const Step& step, const Source& source) const {
    if (source.kind == Source::Kind::kMessage) {
      if (step.op == StepOp::kSend) return "sends a message instead of a local range";
      return problem_of_peer(source.peer, "receives from");
    }
    if (source.kind != Source::Kind::kLocal) {
      return fmt::format("has a source of the unknown kind {}", static_cast<int>(source.kind));
    }
    if (Problem problem = problem_of_range(source.local, "source")) return problem;
    const BlockIdx num_blocks = shape_.blocks.num_blocks;
    if (source.local.blocks.count != step.dst.blocks.count ||
        source.local.blocks.first % num_blocks != step.dst.blocks.first % num_blocks) {
      return fmt::format("combines {} with {}, which are other elements of the vector",
                         range_name(source.local), range_name(step.dst));
    }
    return {};
  }

  const PlanShape& shape_;
  const Program& program_;
  Rank rank_;
  std::vector<bool> taken_;  ///< by source
};

/// Block accesses of all steps; `most` + 1 if there are more than `most`.
std::int64_t accesses_of(const Plan& plan, std::int64_t most) {
  std::int64_t accesses = 0;
  for (const Program& program : plan.programs) {
    for (const Step& step : program.steps) {
      const std::int64_t operands = step.num_sources + (step.op == StepOp::kSend ? 0 : 1);
      if (step.dst.blocks.count > (most - accesses) / operands) return most + 1;
      accesses += step.dst.blocks.count * operands;
    }
  }
  return accesses;
}

constexpr std::int64_t kMaxSteps = std::int64_t{1} << 27;

/// Steps may share a list of dependencies, so the size of the pool does not limit their number.
constexpr std::int64_t kMaxDependencies = std::int64_t{1} << 28;

Problem too_many_values(const PlanShape& shape, const CheckOptions& options) {
  const std::int64_t per_rank = 2 * shape.blocks.num_blocks + shape.blocks.num_scratch_blocks;
  if (per_rank <= options.max_values / shape.num_ranks) return {};
  return fmt::format("{} ranks with {} blocks each (the checker holds at most {} block values)",
                     shape.num_ranks, per_rank, options.max_values);
}

bool check_size(const Plan& plan, Findings& findings) {
  const CheckOptions& options = findings.options();
  if (Problem problem = too_many_values(plan.shape, options)) {
    findings.add(FindingKind::kTooLarge, {}, *problem);
    return false;
  }
  std::int64_t steps = 0;
  std::int64_t deps = 0;
  for (const Program& program : plan.programs) {
    steps += static_cast<std::int64_t>(program.steps.size());
    for (const Step& step : program.steps) deps += step.num_deps;
  }
  if (steps > kMaxSteps || deps > kMaxDependencies) {
    findings.add(FindingKind::kTooLarge, {},
                 fmt::format("{} steps with {} dependencies (the checker takes at most {} with {})", steps,
                             deps, kMaxSteps, kMaxDependencies));
    return false;
  }
  if (accesses_of(plan, options.max_accesses) > options.max_accesses) {
    findings.add(
        FindingKind::kTooLarge, {},
        fmt::format("the steps access more than {} blocks, the checker's limit", options.max_accesses));
    return false;
  }
  return true;
}

}  // namespace

std::string too_large_to_build(const PlanBuilder& builder, const CheckOptions& options) {
  const PlanShape& shape = builder.shape();
  if (Problem problem = too_many_values(shape, options)) return *problem;
  // A parameter server, or a root, has more steps than other ranks: take the smaller number of two ranks.
  std::size_t steps_of_one = builder.program(0).steps.size();
  if (steps_of_one > 0)
    steps_of_one = std::min(steps_of_one, builder.program(shape.num_ranks - 1).steps.size());
  const std::int64_t steps = static_cast<std::int64_t>(steps_of_one) * shape.num_ranks;
  if (steps <= kMaxSteps) return {};
  return fmt::format("about {} steps (the checker takes at most {})", steps, kMaxSteps);
}

bool check_structure(const Plan& plan, Findings& findings) {
  const PlanShape& shape = plan.shape;
  const auto malformed = [&](PlanPlace where, std::string text) {
    findings.add(FindingKind::kMalformed, where, std::move(text));
    return false;
  };
  if (shape.num_ranks < 1)
    return malformed({}, fmt::format("invalid number of ranks {} (valid: 1 or more)", shape.num_ranks));
  if (plan.programs.size() != static_cast<std::size_t>(shape.num_ranks)) {
    return malformed({}, fmt::format("{} programs for {} ranks", plan.programs.size(), shape.num_ranks));
  }
  if (Problem problem = problem_of(shape.blocks, findings.options().max_values))
    return malformed({}, *problem);
  bool valid = true;
  for (Rank rank = 0; rank < shape.num_ranks; ++rank) {
    const Program& program = plan.programs[rank];
    if (program.rank != rank) {
      valid = malformed(
          {.rank = rank},
          fmt::format("program {} is for rank {}; programs must be in rank order", rank, program.rank));
    }
    if (program.steps.size() > static_cast<std::size_t>(kMaxSteps)) {
      return malformed({.rank = rank},
                       fmt::format("{} has {} steps", findings.rank_name(rank), program.steps.size()));
    }
    ProgramCheck check(plan, rank);
    if (Problem problem = check.problem_of_owned()) {
      valid = malformed({.rank = rank}, fmt::format("{} {}", findings.rank_name(rank), *problem));
    }
    for (StepId id = 0; id < static_cast<StepId>(program.steps.size()); ++id) {
      if (Problem problem = check.problem_of_step(id)) {
        const Step& step = program.steps[id];
        valid = malformed(Findings::place(rank, id, step),
                          fmt::format("{}, step {} ({}) {}", findings.rank_name(rank), id,
                                      Findings::stage_name(step), *problem));
      }
    }
  }
  return valid && check_size(plan, findings);
}

}  // namespace hips::plan
