#include "lib/plan/algorithms/recursive_exchange.hpp"

#include <utility>

#include "lib/pattern/pairs.hpp"
#include "lib/plan/prunable.hpp"
#include "lib/plan/steps/peer_link.hpp"
#include "lib/plan/steps/program_writer.hpp"
#include "lib/plan/steps/shapes.hpp"

namespace hips::plan {
namespace {

constexpr BlockRange kAll{0, 1};

class RecursiveExchangeBuilder final : public PrunableBuilder {
 public:
  RecursiveExchangeBuilder(const Topology& topology, std::string algorithm, std::string description,
                           ExchangeGroups groups)
      : topology_(topology), groups_(std::move(groups)) {
    shape_.algorithm = std::move(algorithm);
    shape_.description = std::move(description);
    if (topology.num_ranks() == 1) {
      shape_single(shape_);
      return;
    }
    shape_.num_ranks = topology.num_ranks();
    shape_.neighbours_only = all_are_neighbours(topology);
    std::vector<StageInfo> stages;
    if (has_pairs()) stages.push_back({Phase::kScatter, -1, Pattern::kPs, 1});
    for (const std::int64_t radix : groups_.radices) {
      stages.push_back({Phase::kScatter, -1, Pattern::kMesh, static_cast<std::int32_t>(radix)});
      distances_.push_back(distances_.back() * radix);
    }
    if (has_pairs()) stages.push_back({Phase::kGather, -1, Pattern::kPs, 1});
    shape_.num_steps = static_cast<std::int32_t>(stages.size());
    shape_one_lane(shape_, 1, std::move(stages));
  }

  [[nodiscard]] const PlanShape& shape() const override { return shape_; }

  [[nodiscard]] Program program(Rank rank) const override {
    if (shape_.num_ranks == 1) return program_single();
    ProgramWriter writer(rank);
    if (pattern::is_outside_core(*this, rank)) {
      const StepId sent = send(writer, 0, pair_link(rank, 0), Buffer::kInput, {});
      writer.add(step(StepOp::kCopy, Phase::kGather, last_stage()), {message(pair_link(rank, last_stage()))},
                 writer.after({sent}));
      return writer.take();
    }

    const bool in_pair = pattern::in_pair(*this, rank);
    Buffer current = Buffer::kInput;
    ProgramWriter::After ready;
    if (in_pair) {
      const StepId reduced = writer.add(step(StepOp::kReduce, Phase::kScatter, 0),
                                        {message(pair_link(rank, 0)), local(current)}, {});
      ready = writer.after({reduced});
      current = Buffer::kOutput;
    }
    for (std::size_t round = 0; round < groups_.radices.size(); ++round) {
      ready = exchange(writer, rank, round, current, ready);
      current = Buffer::kOutput;
    }
    if (in_pair)
      send(writer, last_stage(), pair_link(rank, last_stage()), Buffer::kOutput, ready, Phase::kGather);
    writer.own(kAll);
    return writer.take();
  }

  [[nodiscard]] std::vector<BlockRange> owned(Rank rank) const override {
    if (shape_.num_ranks > 1 && pattern::is_outside_core(*this, rank)) return {};
    return {kAll};
  }

  /// Before a round the values are at the core members that differ from the root's in earlier digits only.
  [[nodiscard]] bool kept_in_bcast(const MessageName& message, Rank root) const override {
    if (is_first_of_pairs(message)) return message.from == root;
    if (is_last_of_pairs(message)) return message.to != root;
    const std::int64_t distance = distances_[round_of(message)];
    return pattern::core_index(*this, message.from) / distance == core_index_of(root) / distance;
  }

  /// The same reversed: what arrives in a round reaches the root if the digits up to that round are those of the root.
  [[nodiscard]] bool kept_in_reduce(const MessageName& message, Rank root) const override {
    if (is_first_of_pairs(message)) return true;
    if (is_last_of_pairs(message)) return message.to == root;
    const std::int64_t next = distances_[round_of(message) + 1];
    return pattern::core_index(*this, message.to) % next == core_index_of(root) % next;
  }

  /// Of the ranks; pattern::in_pair() and its like ask for it.
  [[nodiscard]] std::int64_t rest() const { return groups_.rest; }

 private:
  [[nodiscard]] bool has_pairs() const { return rest() > 0; }
  [[nodiscard]] std::int32_t first_round() const { return has_pairs() ? 1 : 0; }
  [[nodiscard]] std::int32_t last_stage() const { return shape_.num_steps - 1; }
  [[nodiscard]] bool is_first_of_pairs(const MessageName& message) const {
    return has_pairs() && message.stage == 0;
  }
  [[nodiscard]] bool is_last_of_pairs(const MessageName& message) const {
    return has_pairs() && message.stage == last_stage();
  }

  [[nodiscard]] std::size_t round_of(const MessageName& message) const {
    return static_cast<std::size_t>(message.stage - first_round());
  }

  /// The number of a rank in the core, or of the other rank of its pair.
  [[nodiscard]] std::int64_t core_index_of(Rank rank) const {
    return pattern::core_index(*this,
                               pattern::is_outside_core(*this, rank) ? pattern::pair_of(*this, rank) : rank);
  }

  /// Sends the partial sum to the others of the group and reduces theirs in the order of ranks.
  ProgramWriter::After exchange(ProgramWriter& writer, Rank rank, std::size_t round, Buffer current,
                                ProgramWriter::After ready) const {
    const std::int32_t stage = first_round() + static_cast<std::int32_t>(round);
    const std::int64_t index = pattern::core_index(*this, rank), distance = distances_[round];
    const std::int64_t radix = groups_.radices[round], digit = index / distance % radix;
    std::vector<Source> sources;
    std::vector<StepId> sent;
    for (std::int64_t other = 0; other < radix; ++other) {
      if (other == digit) {
        sources.push_back(local(current));
        continue;
      }
      const std::int64_t peer = index + (other - digit) * distance;
      const auto turn = stage + static_cast<std::int32_t>(digit + other) - 1;
      const PeerLink link =
          routed_link(topology_, rank, static_cast<Rank>(pattern::core_member(*this, peer)), turn);
      sources.push_back(message(link));
      sent.push_back(send(writer, stage, link, current, ready));
    }
    // The reduction overwrites what was sent, so it waits for the sends, which waited for the reduction before.
    return writer.after(
        {writer.add(step(StepOp::kReduce, Phase::kScatter, stage), sources, writer.after(sent))});
  }

  [[nodiscard]] PeerLink pair_link(Rank rank, std::int32_t stage) const {
    return routed_link(topology_, rank, static_cast<Rank>(pattern::pair_of(*this, rank)), stage);
  }
  static Step step(StepOp op, Phase phase, std::int32_t stage) {
    Step step;
    step.op = op;
    step.phase = phase;
    step.stage = stage;
    step.level = -1;
    step.dst = {Buffer::kOutput, kAll};
    return step;
  }
  static Source local(Buffer buffer) { return {Source::Kind::kLocal, {buffer, kAll}}; }
  static Source message(const PeerLink& link) { return {Source::Kind::kMessage, {}, link.peer, link.in}; }
  static StepId send(ProgramWriter& writer, std::int32_t stage, const PeerLink& link, Buffer from,
                     ProgramWriter::After after, Phase phase = Phase::kScatter) {
    Step send = step(StepOp::kSend, phase, stage);
    send.peer = link.peer;
    send.rail = link.out;
    return writer.add(send, {local(from)}, after);
  }

  Topology topology_;
  ExchangeGroups groups_;
  std::vector<std::int64_t> distances_{1};  ///< between neighbours of a group, by round
  PlanShape shape_;
};

}  // namespace

std::unique_ptr<PlanBuilder> make_recursive_exchange(const Topology& topology, std::string algorithm,
                                                     std::string description, ExchangeGroups groups) {
  return std::make_unique<RecursiveExchangeBuilder>(topology, std::move(algorithm), std::move(description),
                                                    std::move(groups));
}

}  // namespace hips::plan
