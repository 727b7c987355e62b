#include "lib/plan/contribution_run.hpp"

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

/// A value of every block of every rank, as one line of memory for each rank.
class BlockValues {
 public:
  BlockValues(const Plan& plan, bool in_place)
      : num_blocks_(plan.shape.blocks.num_blocks),
        output_(in_place ? 0 : num_blocks_),
        scratch_(output_ + num_blocks_),
        per_rank_(scratch_ + plan.shape.blocks.num_scratch_blocks),
        values_(static_cast<std::size_t>(per_rank_ * plan.shape.num_ranks), kUnwritten) {}

  /// The value of the first block of a range; the others follow.
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

/// The history of one block: what each step that touches it made of it. Found by following the plan again for
/// that block alone, so that following it for all blocks needs no history.
class BlockHistory {
 public:
  struct Operand {
    ValueId value = kUnwritten;
    StepIdx writer = kNoStep;  ///< of local memory; kNoStep for the input as the caller gave it
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
      if (const Rank giver = goal.only_giver(block); giver >= 0 && giver != rank) continue;
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

  /// The step that wrote the block in a rank's output last; kNoStep where none did.
  [[nodiscard]] StepIdx last_writer(Rank rank) const { return last_writer_[rank]; }
  [[nodiscard]] const Event& event(StepIdx step) const { return events_.at(step); }

 private:
  const Plan& plan_;
  BlockIdx block_;
  std::unordered_map<StepIdx, Event> events_;
  std::vector<StepIdx> last_writer_;
};

class Run {
 public:
  Run(const Plan& plan, const CheckGoal& goal, const StepTable& table, const Messages& messages,
      const CheckLayout& layout, std::span<const StepIdx> order, bool in_place, ContributionPool& pool,
      Findings& findings)
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
    findings_.add(FindingKind::kTooLarge, {}, "more partial sums than the checker keeps at once");
  }

  [[nodiscard]] const char* placement() const { return in_place_ ? "in place" : "out of place"; }

  bool set_inputs() {
    for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) {
      const std::optional<ValueId> own = pool_.of_rank(rank);
      if (!own) return false;
      for (BlockIdx block = 0; block < plan_.shape.blocks.num_blocks; ++block) {
        if (const Rank giver = goal_.only_giver(block); giver < 0 || giver == rank)
          values_.input(rank)[block] = *own;
      }
    }
    return true;
  }

  /// Does a value hold all that is brought to the block, once?
  [[nodiscard]] bool is_final(BlockIdx block, ValueId value) {
    const Rank giver = goal_.only_giver(block);
    return giver < 0 ? pool_.is_complete(value) : value != kUnwritten && value == pool_.of_rank(giver);
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
        tell_unwritten_read(rank, idx, step, program.sources[step.first_source].local, block);
        break;
      }
      if (step.phase == Phase::kGather && !is_final(block, message[i])) {
        tell_partial_gather(rank, idx, step, block, message[i]);
        break;
      }
    }
  }

  /// Folds the sources of a reduction or copies the one of a copy; false when the pool is full.
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
          is_message ? messages_in_flight_[slot_of_[sender]].data() : values_.at(rank, source.local);
      bool told = false;
      for (BlockIdx i = 0; i < count; ++i) {
        if (layout_.is_empty(first_block(step) + i)) continue;
        if (operand[i] == kUnwritten) {
          // What a message lacks was told where it was sent.
          if (!is_message && !told) tell_unwritten_read(rank, idx, step, source.local, first_block(step) + i);
          told = true;
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
      free_slots_.push_back(static_cast<std::uint32_t>(messages_in_flight_.size()));
      messages_in_flight_.emplace_back();
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    slot_of_[send] = slot;
    return messages_in_flight_[slot];
  }

  /// Remembers the blocks whose complete sum a reduction has made.
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

  void tell_unwritten_read(Rank rank, StepIdx idx, const Step& step, const BufferRange& range,
                           BlockIdx block) {
    if (!findings_.count(FindingKind::kUnwritten)) return;
    findings_.tell(FindingKind::kUnwritten, Findings::place(rank, table_.id(idx), step, block),
                   fmt::format("{}, {} reads {}, of which block {} has not been written then ({})",
                               findings_.rank_name(rank), findings_.step_name(rank, table_.id(idx)),
                               range_name(range), block, placement()));
  }

  void tell_partial_gather(Rank rank, StepIdx idx, const Step& step, BlockIdx block, ValueId value) {
    if (!findings_.count(FindingKind::kOwner)) return;
    findings_.tell(
        FindingKind::kOwner, Findings::place(rank, table_.id(idx), step, block),
        fmt::format("the gather hands round what the scatter has not finished: {}, {} sends block {}, which "
                    "holds {} there ({})",
                    findings_.rank_name(rank), findings_.step_name(rank, table_.id(idx)), block,
                    value_text(value), placement()));
  }

  void check_outputs() {
    for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) {
      const ValueId* output = values_.output(rank);
      for (BlockIdx block = 0; block < plan_.shape.blocks.num_blocks; ++block) {
        if (!goal_.wants(rank, block) || is_final(block, output[block]) || layout_.is_empty(block)) continue;
        const FindingKind kind = output[block] == kUnwritten        ? FindingKind::kUnwritten
                                 : pool_.has_doubled(output[block]) ? FindingKind::kDoubled
                                                                    : FindingKind::kLost;
        if (findings_.count(kind)) tell_wrong_output(kind, rank, block, output[block]);
      }
    }
  }

  void tell_wrong_output(FindingKind kind, Rank rank, BlockIdx block, ValueId value) {
    const Place place{.rank = rank, .block = block};
    if (kind == FindingKind::kUnwritten) {
      return findings_.tell(kind, place,
                            fmt::format("output block {} of {} is never written ({})", block,
                                        findings_.rank_name(rank), placement()));
    }
    const bool lost = kind == FindingKind::kLost;
    if (const Rank giver = goal_.only_giver(block); lost && giver >= 0) {
      return findings_.tell(
          kind, place,
          fmt::format("output block {} of {} holds {}, not the input of {} ({})", block,
                      findings_.rank_name(rank), value_text(value), findings_.rank_name(giver), placement()),
          pool_.contains(value, giver) ? std::vector<std::string>() : trace(kind, rank, block, giver));
    }
    const std::vector<Rank> culprits = lost ? pool_.missing_ranks(value) : pool_.doubled_ranks(value);
    findings_.tell(kind, place,
                   fmt::format("output block {} of {} {} the contribution of {}{} ({})", block,
                               findings_.rank_name(rank), lost ? "lacks" : "holds",
                               findings_.rank_names(culprits), lost ? "" : " more than once", placement()),
                   trace(kind, rank, block, culprits.front()));
  }

  /// The way back from a wrong output to the step that made it wrong.
  std::vector<std::string> trace(FindingKind kind, Rank rank, BlockIdx block, Rank culprit) {
    const BlockHistory history(plan_, goal_, table_, messages_, order_, in_place_, pool_, block);
    std::vector<std::string> lines;
    const auto is_wrong = [&](const BlockHistory::Operand& operand) {
      return kind == FindingKind::kLost ? !pool_.contains(operand.value, culprit)
                                        : pool_.is_doubled(operand.value, culprit);
    };
    StepIdx at = history.last_writer(rank);
    if (at == kNoStep)
      lines.push_back(
          fmt::format("{}: no step writes it; it still holds the input", findings_.rank_name(rank)));
    std::unordered_set<StepIdx> seen;
    while (at != kNoStep && seen.insert(at).second && lines.size() < kMostTraceLines) {
      const BlockHistory::Event& event = history.event(at);
      lines.push_back(event_text(at, event));
      StepIdx next = kNoStep;
      if (event.operands.size() == 1) {
        // A copy or a send makes nothing wrong.
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
                  : fmt::format("message of {}", findings_.rank_name(table_.rank(operand.sender)));
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
                        owned[block] ? "owns it by the plan's table, but its steps do not complete the sum"
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
  std::vector<std::uint32_t> slot_of_;  ///< by sending step, while its message is in flight
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::vector<ValueId>> messages_in_flight_;
  std::vector<std::vector<BlockRange>> computed_;  ///< by rank
};

}  // namespace

void check_contributions(const Plan& plan, const CheckGoal& goal, const StepTable& table,
                         const Messages& messages, const CheckLayout& layout, std::span<const StepIdx> order,
                         bool in_place, ContributionPool& pool, Findings& findings) {
  Run(plan, goal, table, messages, layout, order, in_place, pool, findings).follow_and_check();
}

}  // namespace hips::plan
