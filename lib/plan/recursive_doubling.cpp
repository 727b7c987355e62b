// "recursive-doubling": ranks exchange their whole partial sums, at distances 1, 2, 4, ...; pairs beyond the
// power of two fold into one before and are served after. Fewest steps, most bytes: for tiny vectors.
//
// Every rank computes every element, so all must compute the same bits. They do: the partial sum of the lower
// ranks is always the first operand, so all fold the same operands in the same brackets, and a NaN's payload
// or the sign of a zero cannot depend on who folds.

#include <fmt/format.h>

#include "lib/pattern/halving.hpp"
#include "lib/plan/flat.hpp"

namespace hips::plan {
namespace {

constexpr BlockRange kAll{0, 1};

class RecursiveDoublingBuilder final : public PlanBuilder {
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
    if (halving_.rest() > 0) stages.push_back({Phase::kScatter, -1, Pattern::kPs, 1});
    for (std::int32_t round = 0; round < halving_.num_rounds(); ++round) {
      stages.push_back({Phase::kScatter, -1, Pattern::kMesh, 2});
    }
    if (halving_.rest() > 0) stages.push_back({Phase::kGather, -1, Pattern::kPs, 1});
    shape_.num_steps = static_cast<std::int32_t>(stages.size());
    shape_one_lane(shape_, 1, std::move(stages));
  }

  [[nodiscard]] const PlanShape& shape() const override { return shape_; }

  [[nodiscard]] Program program(Rank rank) const override {
    if (shape_.num_ranks == 1) return program_single();
    ProgramWriter writer(rank);
    const std::int32_t last_stage = shape_.num_steps - 1;
    if (pattern::is_folded_out(halving_, rank)) {
      const Link pair = routed_link(topology_, rank, static_cast<Rank>(pattern::pair_of(halving_, rank)));
      const StepId sent = send(writer, 0, pair, Buffer::kInput, {});
      writer.add(step(StepOp::kCopy, Phase::kGather, last_stage), {message(pair)}, writer.after({sent}));
      return writer.take();
    }

    const bool in_pair = pattern::in_pair(halving_, rank);
    Buffer current = Buffer::kInput;
    ProgramWriter::After ready;
    std::int32_t stage = 0;
    if (in_pair) {
      const Link pair = routed_link(topology_, rank, static_cast<Rank>(pattern::pair_of(halving_, rank)));
      ready = writer.after(
          {writer.add(step(StepOp::kReduce, Phase::kScatter, 0), {message(pair), local(current)}, {})});
      current = Buffer::kOutput;
    }
    if (halving_.rest() > 0) ++stage;
    const std::int64_t v = pattern::core_index(halving_, rank);
    for (std::int32_t round = 0; round < halving_.num_rounds(); ++round, ++stage) {
      const std::int64_t peer = pattern::exchange_peer(v, round);
      const Link link = routed_link(topology_, rank, static_cast<Rank>(pattern::core_member(halving_, peer)));
      const StepId sent = send(writer, stage, link, current, ready);
      // The fold overwrites what was sent, so it waits for that send; the send waited for the fold before.
      const Source own = local(current), other = message(link);
      const Step fold = step(StepOp::kReduce, Phase::kScatter, stage);
      const StepId folded = peer < v ? writer.add(fold, {other, own}, writer.after({sent}))
                                     : writer.add(fold, {own, other}, writer.after({sent}));
      ready = writer.after({folded});
      current = Buffer::kOutput;
    }
    if (in_pair) {
      const Link pair = routed_link(topology_, rank, static_cast<Rank>(pattern::pair_of(halving_, rank)));
      send(writer, last_stage, pair, Buffer::kOutput, ready, Phase::kGather);
    }
    writer.own(kAll);
    return writer.take();
  }

 private:
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
  static Source message(const Link& link) { return {Source::Kind::kMessage, {}, link.peer, link.in}; }
  static StepId send(ProgramWriter& writer, std::int32_t stage, const Link& link, Buffer from,
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
  if (Status status = refuse_foreign_options("recursive-doubling", request, {}); !status.ok()) {
    return fail(std::move(status));
  }
  return std::make_unique<RecursiveDoublingBuilder>(topology);
}

}  // namespace hips::plan
