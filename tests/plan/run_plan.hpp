#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include <hips/plan.hpp>

namespace hips::tests {

/// Runs a plan of at most 64 ranks, one whole step at a time, in a random order that `after` allows. A value
/// is the set of ranks whose input it contains; reducing sets that overlap is an error.
///
/// A send has two moments: its message leaves, and later, perhaps long after its receipt, the send completes
/// locally. Its source must not change until then, as a network may send it again.
///
/// With `in_place`, input and output are one buffer, so that a missing `after` shows as a wrong set. Returns
/// "" if every rank ends with the full set in every block, otherwise the first error.
inline std::string run_plan(const Plan& plan, std::uint64_t seed, bool in_place) {
  using Set = std::uint64_t;
  using Name =
      std::tuple<Rank, Rank, std::int32_t, std::int32_t, std::int32_t>;  // from, to, lane, stage, round
  const std::int64_t num_blocks = plan.shape.blocks.num_blocks;
  const std::size_t num_ranks = plan.programs.size();
  const Set everyone = num_ranks == 64 ? ~Set{0} : (Set{1} << num_ranks) - 1;
  constexpr Set kNothing = 0;

  struct RankState {
    std::vector<Set> input, output;
    std::vector<bool> done, started;
    std::vector<std::vector<Set>> sent;  ///< by step: the source of a started send
    std::vector<StepId> pending;
  };
  std::vector<RankState> ranks(num_ranks);
  for (std::size_t r = 0; r < num_ranks; ++r) {
    ranks[r].input.assign(num_blocks, Set{1} << r);
    ranks[r].output.assign(num_blocks, in_place ? Set{1} << r : kNothing);
    ranks[r].done.assign(plan.programs[r].steps.size(), false);
    ranks[r].started = ranks[r].done;
    ranks[r].sent.resize(plan.programs[r].steps.size());
    for (std::size_t s = 0; s < plan.programs[r].steps.size(); ++s) ranks[r].pending.push_back(StepId(s));
  }
  const auto memory = [&](RankState& rank, Buffer buffer) -> std::vector<Set>& {
    return buffer == Buffer::kInput && !in_place ? rank.input : rank.output;
  };
  std::map<Name, std::vector<Set>> on_the_wire;

  std::mt19937_64 random(seed);
  bool started_one = false;
  const auto try_step = [&](Rank r, StepId id, std::string& error) {
    const Program& program = plan.programs[r];
    const Step& step = program.steps[id];
    RankState& rank = ranks[r];
    for (const StepId before : program.after(step)) {
      if (before >= id) error = fmt::format("rank {} step {} waits for the later step {}", r, id, before);
      if (!rank.done[before]) return false;
    }
    const auto where = [&] {
      return fmt::format("rank {} step {} (lane {}, stage {})", r, id, step.lane, step.stage);
    };
    const std::int64_t first = step.dst.blocks.first, count = step.dst.blocks.count;
    if (first < 0 || count < 1 || first + count > num_blocks) {
      error = where() + fmt::format(": blocks {}+{}", first, count);
      return false;
    }
    std::vector<std::vector<Set>> operands;
    for (const Source& source : program.sources_of(step)) {
      if (source.kind == Source::Kind::kMessage) {
        const auto message = on_the_wire.find({source.peer, r, step.lane, step.stage, step.round});
        if (message == on_the_wire.end()) return false;
        if (std::int64_t(message->second.size()) != count) error = where() + ": message of another size";
        operands.push_back(message->second);
      } else {
        const std::vector<Set>& from = memory(rank, source.local.buffer);
        if (source.local.blocks.count != count) error = where() + ": operand of another size";
        operands.emplace_back(from.begin() + source.local.blocks.first,
                              from.begin() + source.local.blocks.end());
      }
    }
    if (!error.empty()) return false;
    if (rank.started[id]) {
      if (rank.sent[id] != operands.front()) error = where() + ": its source changed before it was done";
      rank.done[id] = true;
      return true;
    }
    if (operands.empty()) error = where() + " has no source";
    for (const Source& source : program.sources_of(step)) {
      if (source.kind == Source::Kind::kMessage)
        on_the_wire.erase({source.peer, r, step.lane, step.stage, step.round});
    }
    if (step.op != StepOp::kReduce && operands.size() != 1) error = where() + " has several sources";
    std::vector<Set> result(count, kNothing);
    for (const auto& operand : operands) {
      for (std::int64_t b = 0; b < count; ++b) {
        if (operand[b] == kNothing) error = where() + " reads a block that holds nothing";
        if ((result[b] & operand[b]) != 0) error = where() + " counts a contribution twice";
        result[b] |= operand[b];
      }
    }
    if (step.op == StepOp::kSend) {
      if (!on_the_wire.emplace(Name{r, step.peer, step.lane, step.stage, step.round}, result).second) {
        error = where() + " sends under a name that is in use";
      }
      rank.started[id] = true;
      rank.sent[id] = std::move(result);
      started_one = true;
      return false;
    }
    std::ranges::copy(result, memory(rank, step.dst.buffer).begin() + first);
    rank.done[id] = true;
    return true;
  };

  std::vector<Rank> order(num_ranks);
  for (std::size_t r = 0; r < num_ranks; ++r) order[r] = Rank(r);
  // A pass tries only some steps of each rank, so that ranks run ahead of one another. After a pass without
  // progress all steps are tried.
  bool progress = true;
  for (bool all = false; progress || !all;) {
    all = !progress;
    progress = started_one = false;
    std::ranges::shuffle(order, random);
    for (const Rank r : order) {
      RankState& rank = ranks[r];
      std::ranges::shuffle(rank.pending, random);
      const std::size_t attempts = all ? rank.pending.size() : random() % (rank.pending.size() + 1);
      std::vector<StepId> left;
      for (std::size_t i = 0; i < rank.pending.size(); ++i) {
        std::string error;
        const bool did = i < attempts && try_step(r, rank.pending[i], error);
        if (!error.empty()) return error;
        if (!did) left.push_back(rank.pending[i]);
        progress = progress || did;
      }
      rank.pending = std::move(left);
    }
    progress = progress || started_one;
  }
  for (std::size_t r = 0; r < num_ranks; ++r) {
    if (!ranks[r].pending.empty()) {
      return fmt::format("rank {} never runs step {}", r, std::ranges::min(ranks[r].pending));
    }
    for (std::int64_t b = 0; b < num_blocks; ++b) {
      if (ranks[r].output[b] != everyone) {
        return fmt::format("rank {} ends with {:#x} instead of {:#x} in block {}", r, ranks[r].output[b],
                           everyone, b);
      }
    }
  }
  if (!on_the_wire.empty()) return "a message that is not received";
  return {};
}

}  // namespace hips::tests
