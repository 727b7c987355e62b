#include "tools/hips/picture/holdings.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lib/plan/check/contribution_set.hpp"

namespace hips::picture {
namespace {

/// Limit of the memory for sums; no plan that can be drawn needs more.
constexpr std::size_t kMostBytesOfSums = std::size_t{256} << 20;

using Values = std::vector<plan::ValueId>;

class DataTracker {
 public:
  explicit DataTracker(const Plan& plan) : plan_(plan), pool_(plan.shape.num_ranks, kMostBytesOfSums) {
    const BlockMap& blocks = plan.shape.blocks;
    for (Rank rank = 0; rank < plan.shape.num_ranks; ++rank) {
      const auto input = pool_.of_rank(rank);
      inputs_.push_back(input.value_or(plan::kUnwritten));
      outputs_.emplace_back(static_cast<std::size_t>(blocks.num_blocks), plan::kUnwritten);
      scratch_.emplace_back(static_cast<std::size_t>(blocks.num_scratch_blocks), plan::kUnwritten);
    }
  }

  Result<Holdings> run(const cost::Timeline& timeline) {
    // A message contains what its source holds when it is sent; the receiving step comes later.
    for (const cost::TimedStep& timed : timeline.steps) {
      const Program& program = plan_.programs[static_cast<std::size_t>(timed.rank)];
      const Step& step = program.steps[static_cast<std::size_t>(timed.step)];
      if (step.op == StepOp::kSend) {
        messages_[{timed.rank, step.peer, step.lane, step.stage, step.round}] =
            read(timed.rank, program.sources_of(step).front().local);
      } else if (!write(program, step, timed.begin_ns)) {
        return hips::fail(Code::kUnsupported, "picture: the plan has too many different sums for a page");
      }
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] Values read(Rank rank, const BufferRange& range) const {
    const auto owner = static_cast<std::size_t>(rank);
    const auto size = static_cast<std::size_t>(range.blocks.count);
    if (range.buffer == Buffer::kInput) return Values(size, inputs_[owner]);
    const Values& from = range.buffer == Buffer::kOutput ? outputs_[owner] : scratch_[owner];
    const auto first = from.begin() + range.blocks.first;
    return {first, first + range.blocks.count};
  }

  bool write(const Program& program, const Step& step, std::int64_t now) {
    Values values;
    for (const Source& source : program.sources_of(step)) {
      Values operand;
      if (source.kind == Source::Kind::kLocal) {
        operand = read(program.rank, source.local);
      } else {
        operand = std::move(messages_[{source.peer, program.rank, step.lane, step.stage, step.round}]);
      }
      if (values.empty()) {
        values = std::move(operand);
        continue;
      }
      for (std::size_t i = 0; i < std::min(values.size(), operand.size()); ++i) {
        const auto sum = pool_.sum(values[i], operand[i]);
        if (!sum) return false;
        values[i] = *sum;
      }
    }
    const auto owner = static_cast<std::size_t>(program.rank);
    Values& to = step.dst.buffer == Buffer::kScratch ? scratch_[owner] : outputs_[owner];
    std::ranges::copy(values, to.begin() + step.dst.blocks.first);
    if (step.dst.buffer == Buffer::kScratch) return true;
    for (std::size_t i = 0; i < values.size();) {
      std::size_t end = i + 1;
      while (end < values.size() && values[end] == values[i]) ++end;
      result_.list.push_back(
          {now,
           program.rank,
           {step.dst.blocks.first + static_cast<BlockIdx>(i), static_cast<BlockIdx>(end - i)},
           number_of(values[i])});
      i = end;
    }
    return true;
  }

  /// Sums are numbered in the order of their first use.
  std::int32_t number_of(plan::ValueId value) {
    const auto [at, added] = numbers_.try_emplace(value, static_cast<std::int32_t>(result_.sums.size()));
    if (added) result_.sums.push_back(pool_.ranks(value));
    return at->second;
  }

  const Plan& plan_;
  plan::ContributionPool pool_;
  Values inputs_;  ///< by rank: all blocks of an input have the same value
  std::vector<Values> outputs_, scratch_;
  std::map<std::tuple<Rank, Rank, std::int32_t, std::int32_t, std::int32_t>, Values> messages_;
  std::unordered_map<plan::ValueId, std::int32_t> numbers_;
  Holdings result_;
};

}  // namespace

Result<Holdings> holdings(const Plan& plan, const cost::Timeline& timeline) {
  return DataTracker(plan).run(timeline);
}

}  // namespace hips::picture
