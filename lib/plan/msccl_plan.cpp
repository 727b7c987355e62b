#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "lib/plan/msccl_algorithm.hpp"
#include "lib/plan/program_writer.hpp"

// Plans name a message by its sender, receiver, lane, stage and round; MSCCL pairs sends and receives of a
// channel by their order. A channel's k-th piece is its round k here, in the scatter where it is added, else
// in the gather.

namespace hips::plan {
namespace {

class MscclPlan {
 public:
  explicit MscclPlan(MscclAlgorithm& algorithm) : algorithm_(algorithm) {}

  Result<Plan> make() {
    if (auto paired = pair_messages(); !paired) return fail(paired.error());
    order_all();
    for (MscclGpu& gpu : algorithm_.gpus) find_cuts(gpu);
    cut_alike();
    Plan plan;
    plan.shape = shape();
    for (std::size_t gpu = 0; gpu < algorithm_.gpus.size(); ++gpu)
      plan.programs.push_back(program_of(static_cast<Rank>(gpu)));
    plan.shape.num_steps = longest_chain(plan);
    return plan;
  }

 private:
  [[nodiscard]] PlanShape shape() const {
    PlanShape shape;
    shape.algorithm = "msccl";
    shape.description = "MSCCL algorithm " + algorithm_.name;
    shape.num_ranks = static_cast<Rank>(algorithm_.gpus.size());
    const std::int64_t chunks = algorithm_.num_chunks;
    shape.blocks.num_blocks = chunks;
    shape.blocks.num_scratch_blocks = num_scratch_rows_ * chunks;
    shape.blocks.parts = {{{0, chunks}, {0, 1}, {1, 1}}};
    for (std::int32_t lane = 0; lane < algorithm_.num_channels; ++lane) {
      shape.lanes.push_back({{0, chunks},
                             +1,
                             {{Phase::kScatter, -1, Pattern::kMesh, shape.num_ranks},
                              {Phase::kGather, -1, Pattern::kMesh, shape.num_ranks}}});
    }
    return shape;
  }

  /// Cuts steps where chunks that have had a first value meet others: what is read of those is the input.
  /// Finds room for sums that are only passed on.
  void find_cuts(MscclGpu& gpu) {
    std::vector<bool> written(static_cast<std::size_t>(algorithm_.num_chunks), false);
    std::vector<std::int32_t> passed_on(written.size(), 0);
    for (const MscclGpu::At& at : gpu.order) {
      MscclStep& step = gpu.step(at);
      for (BlockIdx b = step.chunks.first; b < step.chunks.end(); ++b) {
        if (b == step.chunks.first || written[b] != written[b - 1]) step.cuts.push_back(b);
      }
      if (step.stores) {
        for (BlockIdx b = step.chunks.first; b < step.chunks.end(); ++b) written[b] = true;
      } else if (step.receives) {
        for (BlockIdx b = step.chunks.first; b < step.chunks.end(); ++b)
          step.scratch_row = std::max(step.scratch_row, passed_on[b]++);
        num_scratch_rows_ = std::max(num_scratch_rows_, step.scratch_row + 1);
      }
    }
  }

  /// Puts the steps of every GPU in an order in which all of them can run, one after the other: what receives
  /// comes after what sends. Steps that hang keep the order they have; the checker says why they do.
  void order_all() {
    std::vector<std::vector<MscclGpu::At>> order(algorithm_.gpus.size());
    std::vector<std::vector<std::int32_t>> next(order.size());
    for (std::size_t g = 0; g < order.size(); ++g) next[g].assign(algorithm_.gpus[g].blocks.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t g = 0; g < order.size(); ++g) {
        for (std::size_t b = 0; b < next[g].size(); ++b) {
          auto& steps = algorithm_.gpus[g].blocks[b].steps;
          for (std::int32_t& at = next[g][b]; at < static_cast<std::int32_t>(steps.size()); ++at) {
            MscclStep& step = steps[at];
            const bool own = step.dep_block == static_cast<std::int32_t>(b);
            if (step.dep_block >= 0 && !own && next[g][step.dep_block] <= step.dep_step) break;
            if (step.receives && !step.giver->done) break;
            step.done = moved = true;
            order[g].emplace_back(static_cast<std::int32_t>(b), at);
          }
        }
      }
    }
    for (std::size_t g = 0; g < order.size(); ++g) {
      MscclGpu& gpu = algorithm_.gpus[g];
      std::ranges::copy_if(gpu.order, std::back_inserter(order[g]),
                           [&](const MscclGpu::At& at) { return !gpu.step(at).done; });
      gpu.order = std::move(order[g]);
    }
  }

  /// Finds the two ends of each message.
  Result<void> pair_messages() {
    auto& channels = channels_;
    for (std::size_t g = 0; g < algorithm_.gpus.size(); ++g) {
      MscclGpu& gpu = algorithm_.gpus[g];
      for (const MscclGpu::At& at : gpu.order) {
        const MscclBlock& block = gpu.blocks[at.first];
        MscclStep& step = gpu.step(at);
        if (step.sends) channels[{static_cast<Rank>(g), block.send, block.lane}].sent.push_back(&step);
        if (step.receives) channels[{block.recv, static_cast<Rank>(g), block.lane}].taken.push_back(&step);
      }
    }
    for (auto& [name, ends] : channels) {
      const auto& [sender, receiver, channel] = name;
      if (ends.sent.size() != ends.taken.size()) {
        const MscclStep* alone = ends.sent.size() > ends.taken.size() ? ends.sent[ends.taken.size()]
                                                                      : ends.taken[ends.sent.size()];
        return fail(
            Code::kInvalidArgument,
            fmt::format("msccl: line {}: {} from gpu {} to gpu {} on channel {} are sent and {} received",
                        alone->line, ends.sent.size(), sender, receiver, channel, ends.taken.size()));
      }
      for (std::size_t i = 0; i < ends.sent.size(); ++i) {
        MscclStep& sent = *ends.sent[i];
        const MscclStep& taken = *ends.taken[i];
        if (sent.chunks != taken.chunks) {
          return fail(
              Code::kInvalidArgument,
              fmt::format("msccl: line {}: chunks {} to {} are received, where line {} sends {} to {}",
                          taken.line, taken.chunks.first, taken.chunks.end() - 1, sent.line,
                          sent.chunks.first, sent.chunks.end() - 1));
        }
        sent.taker = &taken;
        ends.taken[i]->giver = &sent;
      }
    }
    return {};
  }

  /// Cuts the two ends of each message alike and numbers the pieces.
  void cut_alike() {
    auto& channels = channels_;
    // A step that receives and sends hands its cuts on: each pass carries them one message further.
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [name, ends] : channels) {
        for (std::size_t i = 0; i < ends.sent.size(); ++i) {
          auto& sent = ends.sent[i]->cuts;
          auto& taken = ends.taken[i]->cuts;
          if (sent == taken) continue;
          std::vector<BlockIdx> both;
          std::ranges::set_union(sent, taken, std::back_inserter(both));
          sent = taken = std::move(both);
          changed = true;
        }
      }
    }
    for (auto& [name, ends] : channels) {
      std::int32_t round = 0;
      for (std::size_t i = 0; i < ends.sent.size(); ++i) {
        ends.sent[i]->send_round = ends.taken[i]->receive_round = round;
        round += static_cast<std::int32_t>(ends.sent[i]->cuts.size());
      }
    }
  }

  /// Where a step puts a piece of what it receives.
  [[nodiscard]] BufferRange target(const MscclStep& step, BlockRange piece) const {
    if (step.scratch_row < 0) return {Buffer::kOutput, piece};
    return {Buffer::kScratch, {step.scratch_row * algorithm_.num_chunks + piece.first, piece.count}};
  }

  static Step step_of(const MscclBlock& block, StepOp op, bool adds, std::int32_t round, BufferRange dst) {
    Step step;
    step.op = op;
    step.phase = adds ? Phase::kScatter : Phase::kGather;
    step.lane = block.lane;
    step.stage = adds ? 0 : 1;
    step.level = -1;
    step.round = round;
    step.dst = dst;
    return step;
  }

  [[nodiscard]] Program program_of(Rank rank) {
    MscclGpu& gpu = algorithm_.gpus[static_cast<std::size_t>(rank)];
    ProgramWriter writer(rank);
    /// By thread block and step: what whoever waits for it waits for.
    std::vector<std::vector<std::vector<StepId>>> ended(gpu.blocks.size());
    std::vector<bool> written(static_cast<std::size_t>(algorithm_.num_chunks), false);
    std::vector<bool> computed(written.size(),
                               false);  ///< the value that stands there is a sum of this rank's
    /// Of each chunk the step that wrote it last, and those that have read it since. What waits by way of a
    /// step whose chunks are empty would wait for nothing, so each step names those whose data it meets.
    std::vector<StepId> writer_of(written.size(), -1);
    std::vector<std::vector<StepId>> readers_of(written.size());
    for (const auto& [b, s] : gpu.order) {
      const MscclBlock& block = gpu.blocks[b];
      const MscclStep& step = block.steps[s];
      std::set<StepId> waits;
      if (s > 0) waits.insert(ended[b][s - 1].begin(), ended[b][s - 1].end());
      if (step.dep_block >= 0 && step.dep_block != b) {
        const auto& other = ended[step.dep_block][step.dep_step];
        waits.insert(other.begin(), other.end());
      }
      const std::vector<StepId> after(waits.begin(), waits.end());
      std::vector<StepId> done;
      for (std::size_t p = 0; p < step.cuts.size(); ++p) {
        const BlockIdx first = step.cuts[p];
        const BlockIdx end = p + 1 < step.cuts.size() ? step.cuts[p + 1] : step.chunks.end();
        const BlockRange piece{first, end - first};
        const auto round = static_cast<std::int32_t>(p);
        Buffer here = step.from;
        if (algorithm_.in_place && !written[first]) here = Buffer::kInput;
        BufferRange value{here, piece};
        std::set<StepId> meets(after.begin(), after.end());
        for (BlockIdx each = first; each < end; ++each) {
          if (writer_of[each] >= 0) meets.insert(writer_of[each]);
          if (step.stores) meets.insert(readers_of[each].begin(), readers_of[each].end());
        }
        std::vector<StepId> ready(meets.begin(), meets.end());
        if (step.receives || step.copies) {
          std::vector<Source> sources;
          if (step.copies || step.reduces) sources.push_back({Source::Kind::kLocal, value});
          if (step.receives) sources.push_back({Source::Kind::kMessage, {}, block.recv, kNoRail});
          value = target(step, piece);
          const Step made = step_of(block, step.reduces ? StepOp::kReduce : StepOp::kCopy, step.reduces,
                                    step.receive_round + round, value);
          ready = {writer.add(made, sources, writer.after(ready))};
          done.push_back(ready.front());
          for (BlockIdx each = first; each < end; ++each) {
            if (!step.stores) {
              readers_of[each].push_back(ready.front());
              continue;
            }
            written[each] = true;
            computed[each] = step.reduces;
            writer_of[each] = ready.front();
            readers_of[each].clear();
          }
        }
        if (step.sends) {
          Step made = step_of(block, StepOp::kSend, step.taker->reduces, step.send_round + round,
                              target(*step.taker, piece));
          made.peer = block.send;
          done.push_back(writer.add(made, {Source{Source::Kind::kLocal, value}}, writer.after(ready)));
          for (BlockIdx each = first; step.scratch_row < 0 && each < end; ++each)
            readers_of[each].push_back(done.back());
        }
      }
      // What does nothing hands on what it waited for.
      ended[b].push_back(done.empty() ? after : std::move(done));
    }
    keep_untouched(rank, written, writer);
    own(computed, writer);
    return writer.take();
  }

  /// One rank alone has nothing to do in the file, but its output is its input.
  void keep_untouched(Rank /*rank*/, const std::vector<bool>& written, ProgramWriter& writer) const {
    if (algorithm_.gpus.size() > 1) return;
    for (BlockIdx chunk = 0; chunk < algorithm_.num_chunks; ++chunk) {
      if (written[chunk]) continue;
      Step copy;
      copy.op = StepOp::kCopy;
      copy.phase = Phase::kGather;
      copy.stage = 1;
      copy.level = -1;
      copy.dst = {Buffer::kOutput, {chunk, 1}};
      writer.add(copy, {Source{Source::Kind::kLocal, {Buffer::kInput, {chunk, 1}}}}, {});
      writer.own({chunk, 1});
    }
  }

  static void own(const std::vector<bool>& computed, ProgramWriter& writer) {
    BlockRange run;
    for (std::size_t chunk = 0; chunk <= computed.size(); ++chunk) {
      if (chunk < computed.size() && computed[chunk]) {
        if (run.count == 0) run.first = static_cast<BlockIdx>(chunk);
        ++run.count;
        continue;
      }
      writer.own(run);
      run = {};
    }
  }

  /// Messages that follow one another, on the longest way; of a plan that hangs, of what moves.
  static std::int32_t longest_chain(const Plan& plan) {
    std::map<std::tuple<Rank, Rank, std::int32_t, std::int32_t, std::int32_t>, std::int32_t> sent;
    std::vector<std::vector<std::int32_t>> chain(plan.programs.size());
    std::int32_t longest = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
        const Program& program = plan.programs[rank];
        while (chain[rank].size() < program.steps.size()) {
          const Step& step = program.steps[chain[rank].size()];
          std::int32_t length = 0;
          bool here = true;
          for (const StepId earlier : program.after(step)) length = std::max(length, chain[rank][earlier]);
          for (const Source& source : program.sources_of(step)) {
            if (source.kind != Source::Kind::kMessage) continue;
            const auto found = sent.find({source.peer, program.rank, step.lane, step.stage, step.round});
            here = here && found != sent.end();
            if (here) length = std::max(length, found->second);
          }
          if (!here) break;
          if (step.op == StepOp::kSend)
            sent[{program.rank, step.peer, step.lane, step.stage, step.round}] = ++length;
          longest = std::max(longest, length);
          // A send that is over makes nobody's chain longer than the step before it did.
          chain[rank].push_back(step.op == StepOp::kSend ? length - 1 : length);
          moved = true;
        }
      }
    }
    return longest;
  }

  /// The steps at both ends of a channel, in order.
  struct Ends {
    std::vector<MscclStep*> sent, taken;
  };

  MscclAlgorithm& algorithm_;
  std::map<std::tuple<Rank, Rank, std::int32_t>, Ends> channels_;  ///< by sender, receiver and channel
  std::int32_t num_scratch_rows_ = 0;
};

}  // namespace

Result<Plan> plan_of(MscclAlgorithm& algorithm) {
  return MscclPlan(algorithm).make();
}

}  // namespace hips::plan
