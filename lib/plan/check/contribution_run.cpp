#include "lib/plan/check/contribution_run.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace hips::plan {
namespace {

/// The value of every block of every rank; the memory of a rank is one line.
class BlockValues {
 public:
  BlockValues(const Plan& plan, bool in_place)
      : num_blocks_(plan.shape.blocks.num_blocks),
        output_(in_place ? 0 : num_blocks_),
        scratch_(output_ + num_blocks_),
        per_rank_(scratch_ + plan.shape.blocks.num_scratch_blocks),
        values_(static_cast<std::size_t>(per_rank_ * plan.shape.num_ranks), kUnwritten) {}

  /// The value of the first block of a range; those of the other blocks follow.
  ValueId* at(Rank rank, const BufferRange& range) {
    BlockIdx base = range.blocks.first;
    if (range.buffer == Buffer::kOutput) base += output_;
    if (range.buffer == Buffer::kScratch) base += scratch_;
    return values_.data() + rank * per_rank_ + base;
  }
  ValueId* input(Rank rank) { return at(rank, {Buffer::kInput, {0, num_blocks_}}); }
  ValueId* output(Rank rank) { return at(rank, {Buffer::kOutput, {0, num_blocks_}}); }

 private:
  BlockIdx num_blocks_, output_, scratch_, per_rank_;
  std::vector<ValueId> values_;
};

/// The history of one block: the result of each step that accesses it. It is found by following the plan
/// again for that block alone, so that the run over all blocks keeps no history.
class BlockHistory {
 public:
  struct Operand {
    ValueId value = kUnwritten;
    StepIdx writer = kNoStep;  ///< of local memory; kNoStep for the caller's input
    StepIdx sender = kNoStep;  ///< of a message
  };
  struct Event {
    std::vector<Operand> operands;
    ValueId result = kUnwritten;
  };

  BlockHistory(const Plan& plan, const CheckGoal& goal, const StepTable& table, const Messages& messages,
               std::span<const StepIdx> order, bool in_place, ContributionPool& pool, BlockIdx block)
      : plan_(plan), block_(block) {
    const BlockIdx num_blocks = plan.shape.blocks.num_blocks;
    struct Cell {
      ValueId value = kUnwritten;
      StepIdx writer = kNoStep;
    };
    // Cells of this block: the input, the output and each scratch copy of a rank.
    const auto cell_of = [&](Rank rank, const BufferRange& range) {
      std::uint64_t copy = 0;
      if (range.buffer == Buffer::kOutput && !in_place) copy = 1;
      if (range.buffer == Buffer::kScratch)
        copy = 2 + static_cast<std::uint64_t>(range.blocks.first / num_blocks);
      return copy * static_cast<std::uint64_t>(plan.shape.num_ranks) + static_cast<std::uint64_t>(rank);
    };
    std::unordered_map<std::uint64_t, Cell> cells;
    for (Rank rank = 0; rank < plan.shape.num_ranks; ++rank) {
      if (const Rank contributor = goal.only_contributor(block); contributor >= 0 && contributor != rank)
        continue;
      cells[cell_of(rank, {Buffer::kInput, {block, 1}})].value = pool.of_rank(rank).value_or(kUnwritten);
    }
    for (StepIdx idx : order) {
      const Rank rank = table.rank(idx);
      const Step& step = plan.programs[rank].steps[table.id(idx)];
      const BlockIdx first = step.dst.blocks.first % num_blocks;
      if (block < first || block >= first + step.dst.blocks.count) continue;
      Event& event = events_[idx];
      for (std::int32_t i = step.first_source; i < step.first_source + step.num_sources; ++i) {
        const Source& source = plan.programs[rank].sources[i];
        Operand operand;
        if (source.kind == Source::Kind::kMessage) {
          operand.sender = messages.sender_of(rank, i);
          operand.value = events_[operand.sender].result;
        } else {
          const Cell& cell = cells[cell_of(rank, source.local)];
          operand.value = cell.value;
          operand.writer = cell.writer;
        }
        event.operands.push_back(operand);
        event.result = i == step.first_source ? operand.value
                       : operand.value == kUnwritten || event.result == kUnwritten
                           ? kUnwritten
                           : pool.sum(event.result, operand.value).value_or(kUnwritten);
      }
      if (step.op != StepOp::kSend) cells[cell_of(rank, step.dst)] = {event.result, idx};
    }
    for (Rank rank = 0; rank < plan.shape.num_ranks; ++rank) {
      const Cell& cell = cells[cell_of(rank, {Buffer::kOutput, {block, 1}})];
      last_writer_.push_back(cell.writer);
    }
  }

  /// The last step that wrote the block of a rank's output; kNoStep: none.
  [[nodiscard]] StepIdx last_writer(Rank rank) const { return last_writer_[rank]; }
  [[nodiscard]] const Event& event(StepIdx step) const { return events_.at(step); }

 private:
  const Plan& plan_;
  BlockIdx block_;
  std::unordered_map<StepIdx, Event> events_;
  std::vector<StepIdx> last_writer_;
};

class ContributionRun {
 public:
  ContributionRun(const Plan& plan, const CheckGoal& goal, const StepTable& table, const Messages& messages,
                  const CheckLayout& layout, std::span<const StepIdx> order, bool in_place,
                  ContributionPool& pool, Findings& findings)
      : plan_(plan),
        goal_(goal),
        table_(table),
        messages_(messages),
        layout_(layout),
        order_(order),
        in_place_(in_place),
        pool_(pool),
        findings_(findings),
        values_(plan, in_place) {}

  void follow_and_check() {
    if (!set_inputs()) return too_many_values();
    slot_of_.assign(table_.size(), kNoSlot);
    computed_.resize(plan_.programs.size());
    for (StepIdx idx : order_) {
      const Rank rank = table_.rank(idx);
      const Step& step = plan_.programs[rank].steps[table_.id(idx)];
      if (step.op == StepOp::kSend) {
        send(rank, idx, step);
      } else if (!combine(rank, idx, step)) {
        return too_many_values();
      }
    }
    check_outputs();
    if (plan_.shape.num_ranks > 1 && goal_.owners_compute()) check_owners();
  }

 private:
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;

  void too_many_values() {
    findings_.add(FindingKind::kTooLarge, {}, "more different partial sums than the checker can hold");
  }

  [[nodiscard]] const char* placement() const { return in_place_ ? "in place" : "out of place"; }

  bool set_inputs() {
    for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) {
      const std::optional<ValueId> own = pool_.of_rank(rank);
      if (!own) return false;
      for (BlockIdx block = 0; block < plan_.shape.blocks.num_blocks; ++block) {
        if (const Rank contributor = goal_.only_contributor(block); contributor < 0 || contributor == rank)
          values_.input(rank)[block] = *own;
      }
    }
    return true;
  }

  /// Does a value hold every contribution to the block exactly once?
  [[nodiscard]] bool is_final(BlockIdx block, ValueId value) {
    const Rank contributor = goal_.only_contributor(block);
    return contributor < 0 ? pool_.is_complete(value)
                           : value != kUnwritten && value == pool_.of_rank(contributor);
  }

  [[nodiscard]] BlockIdx first_block(const Step& step) const {
    return step.dst.blocks.first % plan_.shape.blocks.num_blocks;
  }

  void send(Rank rank, StepIdx idx, const Step& step) {
    const Program& program = plan_.programs[rank];
    const ValueId* from = values_.at(rank, program.sources[step.first_source].local);
    std::vector<ValueId>& message = new_message(idx);
    message.assign(from, from + step.dst.blocks.count);
    for (BlockIdx i = 0; i < step.dst.blocks.count; ++i) {
      const BlockIdx block = first_block(step) + i;
      if (layout_.is_empty(block)) continue;
      if (message[i] == kUnwritten) {
        report_unwritten_read(rank, idx, step, program.sources[step.first_source].local, block);
        break;
      }
      if (step.phase == Phase::kGather && !is_final(block, message[i])) {
        report_partial_gather(rank, idx, step, block, message[i]);
        break;
      }
    }
  }

  /// Reduces the sources of a reduction, or copies the source of a copy; false if the pool is full.
  bool combine(Rank rank, StepIdx idx, const Step& step) {
    const Program& program = plan_.programs[rank];
    const BlockIdx count = step.dst.blocks.count;
    result_.assign(static_cast<std::size_t>(count), kUnwritten);
    bool from_partials = false;
    for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
      const Source& source = program.sources[s];
      const bool is_message = source.kind == Source::Kind::kMessage;
      const StepIdx sender = is_message ? messages_.sender_of(rank, s) : kNoStep;
      const ValueId* operand =
          is_message ? outstanding_[slot_of_[sender]].data() : values_.at(rank, source.local);
      bool reported = false;
      for (BlockIdx i = 0; i < count; ++i) {
        if (layout_.is_empty(first_block(step) + i)) continue;
        if (operand[i] == kUnwritten) {
          // An unwritten message was reported where it was sent.
          if (!is_message && !reported)
            report_unwritten_read(rank, idx, step, source.local, first_block(step) + i);
          reported = true;
        }
        if (!pool_.is_complete(operand[i])) from_partials = true;
        if (s == step.first_source) {
          result_[i] = operand[i];
        } else if (result_[i] == kUnwritten || operand[i] == kUnwritten) {
          result_[i] = kUnwritten;
        } else {
          const std::optional<ValueId> sum = pool_.sum(result_[i], operand[i]);
          if (!sum) return false;
          result_[i] = *sum;
        }
      }
      if (is_message) {
        free_slots_.push_back(slot_of_[sender]);
        slot_of_[sender] = kNoSlot;
      }
    }
    std::copy(result_.begin(), result_.end(), values_.at(rank, step.dst));
    if (step.op == StepOp::kReduce && from_partials) note_computed(rank, step);
    return true;
  }

  std::vector<ValueId>& new_message(StepIdx send) {
    if (free_slots_.empty()) {
      free_slots_.push_back(static_cast<std::uint32_t>(outstanding_.size()));
      outstanding_.emplace_back();
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    slot_of_[send] = slot;
    return outstanding_[slot];
  }

  /// Records the blocks whose complete sum a reduction has computed.
  void note_computed(Rank rank, const Step& step) {
    std::vector<BlockRange>& computed = computed_[rank];
    for (BlockIdx i = 0; i < step.dst.blocks.count; ++i) {
      if (!pool_.is_complete(result_[i])) continue;
      const BlockIdx block = first_block(step) + i;
      if (!computed.empty() && computed.back().end() == block) {
        ++computed.back().count;
      } else {
        computed.push_back({block, 1});
      }
    }
  }

  void report_unwritten_read(Rank rank, StepIdx idx, const Step& step, const BufferRange& range,
                             BlockIdx block) {
    if (!findings_.count(FindingKind::kUnwritten)) return;
    findings_.report(FindingKind::kUnwritten, Findings::place(rank, table_.id(idx), step, block),
                     fmt::format("{}, {} reads {}, of which block {} has not been written by then ({})",
                                 findings_.rank_name(rank), findings_.step_name(rank, table_.id(idx)),
                                 range_name(range), block, placement()));
  }

  void report_partial_gather(Rank rank, StepIdx idx, const Step& step, BlockIdx block, ValueId value) {
    if (!findings_.count(FindingKind::kOwner)) return;
    findings_.report(FindingKind::kOwner, Findings::place(rank, table_.id(idx), step, block),
                     fmt::format("the gather sends a block that the scatter has not finished: {}, {} sends "
                                 "block {}, which holds {} there "
                                 "({})",
                                 findings_.rank_name(rank), findings_.step_name(rank, table_.id(idx)), block,
                                 value_text(value), placement()));
  }

  void check_outputs() {
    for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) {
      const ValueId* output = values_.output(rank);
      for (BlockIdx block = 0; block < plan_.shape.blocks.num_blocks; ++block) {
        if (!goal_.needs(rank, block) || is_final(block, output[block]) || layout_.is_empty(block)) continue;
        const FindingKind kind = output[block] == kUnwritten        ? FindingKind::kUnwritten
                                 : pool_.has_doubled(output[block]) ? FindingKind::kDoubled
                                                                    : FindingKind::kLost;
        if (findings_.count(kind)) report_wrong_output(kind, rank, block, output[block]);
      }
    }
  }

  void report_wrong_output(FindingKind kind, Rank rank, BlockIdx block, ValueId value) {
    const PlanPlace place{.rank = rank, .block = block};
    if (kind == FindingKind::kUnwritten) {
      return findings_.report(kind, place,
                              fmt::format("output block {} of {} is never written ({})", block,
                                          findings_.rank_name(rank), placement()));
    }
    const bool lost = kind == FindingKind::kLost;
    if (const Rank contributor = goal_.only_contributor(block); lost && contributor >= 0) {
      return findings_.report(kind, place,
                              fmt::format("output block {} of {} holds {}, not the input of {} ({})", block,
                                          findings_.rank_name(rank), value_text(value),
                                          findings_.rank_name(contributor), placement()),
                              pool_.contains(value, contributor) ? std::vector<std::string>()
                                                                 : trace(kind, rank, block, contributor));
    }
    const std::vector<Rank> ranks = lost ? pool_.missing_ranks(value) : pool_.doubled_ranks(value);
    findings_.report(kind, place,
                     fmt::format("output block {} of {} {} the contribution of {}{} ({})", block,
                                 findings_.rank_name(rank), lost ? "misses" : "holds",
                                 findings_.rank_names(ranks), lost ? "" : " more than once", placement()),
                     trace(kind, rank, block, ranks.front()));
  }

  /// The steps from a wrong output back to the step that caused the error.
  std::vector<std::string> trace(FindingKind kind, Rank rank, BlockIdx block, Rank blamed) {
    const BlockHistory history(plan_, goal_, table_, messages_, order_, in_place_, pool_, block);
    std::vector<std::string> lines;
    const auto is_wrong = [&](const BlockHistory::Operand& operand) {
      return kind == FindingKind::kLost ? !pool_.contains(operand.value, blamed)
                                        : pool_.is_doubled(operand.value, blamed);
    };
    StepIdx at = history.last_writer(rank);
    if (at == kNoStep)
      lines.push_back(
          fmt::format("{}: no step writes the block; it still holds the input", findings_.rank_name(rank)));
    std::unordered_set<StepIdx> seen;
    while (at != kNoStep && seen.insert(at).second && lines.size() < kMostTraceLines) {
      const BlockHistory::Event& event = history.event(at);
      lines.push_back(event_text(at, event));
      StepIdx next = kNoStep;
      if (event.operands.size() == 1) {
        // A copy or a send does not change the value.
        next = event.operands[0].sender != kNoStep ? event.operands[0].sender : event.operands[0].writer;
      } else if (kind == FindingKind::kDoubled) {
        const auto wrong = std::find_if(event.operands.begin(), event.operands.end(), is_wrong);
        if (wrong != event.operands.end()) next = wrong->sender != kNoStep ? wrong->sender : wrong->writer;
      }
      at = next;
    }
    return lines;
  }

  static constexpr std::size_t kMostTraceLines = 16;

  std::string event_text(StepIdx idx, const BlockHistory::Event& event) {
    const Rank rank = table_.rank(idx);
    std::string text =
        fmt::format("{}, {}: ", findings_.rank_name(rank), findings_.step_name(rank, table_.id(idx)));
    constexpr std::size_t kMostOperands = 8;
    for (std::size_t i = 0; i < std::min(event.operands.size(), kMostOperands); ++i) {
      const BlockHistory::Operand& operand = event.operands[i];
      if (i > 0) text += ", ";
      text += operand.sender == kNoStep
                  ? "local"
                  : fmt::format("message from {}", findings_.rank_name(table_.rank(operand.sender)));
      text += fmt::format(" with {}", value_text(operand.value));
    }
    if (event.operands.size() > kMostOperands) {
      text += fmt::format(" and {} more sources", event.operands.size() - kMostOperands);
    }
    return text;
  }

  std::string value_text(ValueId value) {
    if (value == kUnwritten) return "nothing";
    if (pool_.is_complete(value)) return "all contributions";
    std::string text = fmt::format("the input of {}", findings_.rank_names(pool_.ranks(value)));
    if (pool_.has_doubled(value)) {
      text += fmt::format(", that of {} more than once", findings_.rank_names(pool_.doubled_ranks(value)));
    }
    return text;
  }

  /// Compares what each rank has computed with what the plan says it owns.
  void check_owners() {
    for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) {
      const std::vector<bool> computed = mark(computed_[rank]);
      const std::vector<bool> owned = mark(plan_.programs[rank].owned);
      if (computed == owned) continue;
      for (BlockIdx block = 0; block < plan_.shape.blocks.num_blocks; ++block) {
        if (computed[block] == owned[block]) continue;
        findings_.add(
            FindingKind::kOwner, {.rank = rank, .block = block},
            fmt::format("block {}: {} {} ({})", block, findings_.rank_name(rank),
                        owned[block] ? "owns it by the plan's table, but its steps do not complete its sum"
                                     : "completes its sum, but does not own it by the plan's table",
                        placement()));
        break;
      }
    }
  }

  [[nodiscard]] std::vector<bool> mark(const std::vector<BlockRange>& ranges) const {
    std::vector<bool> marked(static_cast<std::size_t>(plan_.shape.blocks.num_blocks), false);
    for (const BlockRange& range : ranges) {
      for (BlockIdx block = range.first; block < range.end(); ++block) {
        if (!layout_.is_empty(block)) marked[block] = true;
      }
    }
    return marked;
  }

  const Plan& plan_;
  const CheckGoal& goal_;
  const StepTable& table_;
  const Messages& messages_;
  const CheckLayout& layout_;
  std::span<const StepIdx> order_;
  bool in_place_;
  ContributionPool& pool_;
  Findings& findings_;
  BlockValues values_;
  std::vector<ValueId> result_;
  std::vector<std::uint32_t> slot_of_;  ///< by sending step, while its message is outstanding
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::vector<ValueId>> outstanding_;
  std::vector<std::vector<BlockRange>> computed_;  ///< by rank
};

}  // namespace

void check_contributions(const Plan& plan, const CheckGoal& goal, const StepTable& table,
                         const Messages& messages, const CheckLayout& layout, std::span<const StepIdx> order,
                         bool in_place, ContributionPool& pool, Findings& findings) {
  ContributionRun(plan, goal, table, messages, layout, order, in_place, pool, findings).follow_and_check();
}

}  // namespace hips::plan
