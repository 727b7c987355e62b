// "recursive-doubling": ranks exchange their whole partial sums at distances 1, 2, 4, ... Each pair beyond
// the power of two is reduced into its second rank first; the first rank gets the result last. Fewest steps,
// most bytes: for tiny vectors.
//
// Every rank computes every element, so all of them must compute the same bits. They do: the partial sum of
// the lower ranks is always the first operand. All ranks reduce the same operands in the same brackets, and
// neither the payload of a NaN nor the sign of a zero depends on the rank.

#include <fmt/format.h>

#include "lib/pattern/halving.hpp"
#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/options.hpp"
#include "lib/plan/prunable.hpp"
#include "lib/plan/steps/peer_link.hpp"
#include "lib/plan/steps/program_writer.hpp"
#include "lib/plan/steps/shapes.hpp"

namespace hips::plan {
namespace {

constexpr BlockRange kAll{0, 1};

class RecursiveDoublingBuilder final : public PrunableBuilder {
 public:
  explicit RecursiveDoublingBuilder(const Topology& topology)
      : topology_(topology), halving_{topology.num_ranks()} {
    shape_.algorithm = "recursive-doubling";
    shape_.description = fmt::format("recursive doubling of {} ranks", halving_.size);
    if (halving_.size == 1) {
      shape_single(shape_);
      return;
    }
    shape_.num_ranks = topology.num_ranks();
    shape_.neighbours_only = all_are_neighbours(topology);
    std::vector<StageInfo> stages;
    if (has_pairs()) stages.push_back({Phase::kScatter, -1, Pattern::kPs, 1});
    for (std::int32_t round = 0; round < halving_.num_rounds(); ++round) {
      stages.push_back({Phase::kScatter, -1, Pattern::kMesh, 2});
    }
    if (has_pairs()) stages.push_back({Phase::kGather, -1, Pattern::kPs, 1});
    shape_.num_steps = static_cast<std::int32_t>(stages.size());
    shape_one_lane(shape_, 1, std::move(stages));
  }

  [[nodiscard]] const PlanShape& shape() const override { return shape_; }

  [[nodiscard]] Program program(Rank rank) const override {
    if (shape_.num_ranks == 1) return program_single();
    ProgramWriter writer(rank);
    if (pattern::is_outside_core(halving_, rank)) {
      const StepId sent = send(writer, 0, pair_link(rank, 0), Buffer::kInput, {});
      writer.add(step(StepOp::kCopy, Phase::kGather, last_stage()), {message(pair_link(rank, last_stage()))},
                 writer.after({sent}));
      return writer.take();
    }

    const bool in_pair = pattern::in_pair(halving_, rank);
    Buffer current = Buffer::kInput;
    ProgramWriter::After ready;
    if (in_pair) {
      const StepId reduced = writer.add(step(StepOp::kReduce, Phase::kScatter, 0),
                                        {message(pair_link(rank, 0)), local(current)}, {});
      ready = writer.after({reduced});
      current = Buffer::kOutput;
    }
    const std::int64_t v = pattern::core_index(halving_, rank);
    for (std::int32_t round = 0; round < halving_.num_rounds(); ++round) {
      const std::int32_t stage = first_round() + round;
      const std::int64_t peer = pattern::exchange_peer(v, round);
      const PeerLink link =
          routed_link(topology_, rank, static_cast<Rank>(pattern::core_member(halving_, peer)), stage);
      const StepId sent = send(writer, stage, link, current, ready);
      // The reduction overwrites what was sent, so it waits for the send, which waited for the reduction
      // before.
      const Source own = local(current), other = message(link);
      const Step reduce = step(StepOp::kReduce, Phase::kScatter, stage);
      const StepId reduced = peer < v ? writer.add(reduce, {other, own}, writer.after({sent}))
                                      : writer.add(reduce, {own, other}, writer.after({sent}));
      ready = writer.after({reduced});
      current = Buffer::kOutput;
    }
    if (in_pair)
      send(writer, last_stage(), pair_link(rank, last_stage()), Buffer::kOutput, ready, Phase::kGather);
    writer.own(kAll);
    return writer.take();
  }

  [[nodiscard]] std::vector<BlockRange> owned(Rank rank) const override {
    if (shape_.num_ranks > 1 && pattern::is_outside_core(halving_, rank)) return {};
    return {kAll};
  }

  /// A binomial tree: before round k the values are at the core members that differ from the root's in bits
  /// below k.
  [[nodiscard]] bool kept_in_bcast(const MessageName& message, Rank root) const override {
    if (is_first_of_pairs(message)) return message.from == root;
    if (is_last_of_pairs(message)) return message.to != root;
    const std::int32_t round = message.stage - first_round();
    return differing_bits(message.from, root) >> round == 0;
  }

  /// The same tree reversed: what arrives in round k reaches the root if its bits up to k are those of the
  /// root.
  [[nodiscard]] bool kept_in_reduce(const MessageName& message, Rank root) const override {
    if (is_first_of_pairs(message)) return true;
    if (is_last_of_pairs(message)) return message.to == root;
    const std::int32_t round = message.stage - first_round();
    const std::uint64_t up_to_round = (std::uint64_t{2} << round) - 1;
    return (differing_bits(message.to, root) & up_to_round) == 0;
  }

 private:
  [[nodiscard]] bool has_pairs() const { return halving_.rest() > 0; }
  [[nodiscard]] std::int32_t first_round() const { return has_pairs() ? 1 : 0; }
  [[nodiscard]] std::int32_t last_stage() const { return shape_.num_steps - 1; }
  [[nodiscard]] bool is_first_of_pairs(const MessageName& message) const {
    return has_pairs() && message.stage == 0;
  }
  [[nodiscard]] bool is_last_of_pairs(const MessageName& message) const {
    return has_pairs() && message.stage == last_stage();
  }

  /// Bits in which a core member's number differs from that of the root, or of the root's pair.
  [[nodiscard]] std::uint64_t differing_bits(Rank rank, Rank root) const {
    const std::int64_t in_core =
        pattern::is_outside_core(halving_, root) ? pattern::pair_of(halving_, root) : root;
    return static_cast<std::uint64_t>(pattern::core_index(halving_, rank) ^
                                      pattern::core_index(halving_, in_core));
  }

  [[nodiscard]] PeerLink pair_link(Rank rank, std::int32_t stage) const {
    return routed_link(topology_, rank, static_cast<Rank>(pattern::pair_of(halving_, rank)), stage);
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
  pattern::Halving halving_;
  PlanShape shape_;
};

}  // namespace

MadeBuilder make_recursive_doubling(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("recursive-doubling", request, {}); !status.ok()) {
    return fail(std::move(status));
  }
  return std::make_unique<RecursiveDoublingBuilder>(topology);
}

}  // namespace hips::plan
