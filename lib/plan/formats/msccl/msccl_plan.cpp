#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "lib/plan/formats/msccl/msccl_algorithm.hpp"
#include "lib/plan/steps/program_writer.hpp"

// A plan names a message by its sender, receiver, lane, stage and round. MSCCL pairs the sends and receives
// of a channel by their order. Here the k-th piece of a channel is round k: of the scatter if it is added,
// otherwise of the gather.

namespace hips::plan {
namespace {

/// Makes the program of one GPU.
class GpuProgram {
 public:
  GpuProgram(MscclAlgorithm& algorithm, Rank rank)
      : algorithm_(algorithm),
        gpu_(algorithm.gpus[static_cast<std::size_t>(rank)]),
        writer_(rank),
        ended_(gpu_.blocks.size()),
        chunks_(static_cast<std::size_t>(algorithm.num_chunks)) {}

  Program make() {
    for (const auto& [block, step] : gpu_.order) add_step(block, step);
    if (algorithm_.gpus.size() == 1) copy_unwritten();
    own_computed();
    return writer_.take();
  }

 private:
  struct Chunk {
    bool is_written = false;
    bool is_computed = false;  ///< its value is a sum that this rank made
    /// The step that wrote it last, and the steps that have read it since. A step without elements orders
    /// nothing, so each step names all steps whose data it reads or overwrites.
    StepId writer = -1;
    std::vector<StepId> readers;
  };

  /// The steps of the plan that a step of the file waits for.
  [[nodiscard]] std::set<StepId> waits_of(std::int32_t b, std::int32_t s) const {
    const MscclStep& step = gpu_.blocks[b].steps[s];
    std::set<StepId> waits;
    if (s > 0) waits.insert(ended_[b][s - 1].begin(), ended_[b][s - 1].end());
    if (step.dep_block >= 0 && step.dep_block != b) {
      const auto& other = ended_[step.dep_block][step.dep_step];
      waits.insert(other.begin(), other.end());
    }
    return waits;
  }

  void add_step(std::int32_t b, std::int32_t s) {
    const MscclBlock& block = gpu_.blocks[b];
    const MscclStep& step = block.steps[s];
    const std::set<StepId> waits = waits_of(b, s);
    std::vector<StepId> done;
    for (std::size_t p = 0; p < step.cuts.size(); ++p) {
      const BlockIdx first = step.cuts[p];
      const BlockIdx end = p + 1 < step.cuts.size() ? step.cuts[p + 1] : step.chunks.end();
      add_piece(block, step, static_cast<std::int32_t>(p), {first, end - first}, waits, done);
    }
    // Steps after one that does nothing wait for what it waited for.
    if (done.empty()) done.assign(waits.begin(), waits.end());
    ended_[b].push_back(std::move(done));
  }

  /// Adds the steps of piece number `p` to the plan, and to `done`.
  void add_piece(const MscclBlock& block, const MscclStep& step, std::int32_t p, BlockRange piece,
                 std::set<StepId> waits, std::vector<StepId>& done) {
    for (BlockIdx each = piece.first; each < piece.end(); ++each) {
      const Chunk& chunk = chunks_[each];
      if (chunk.writer >= 0) waits.insert(chunk.writer);
      if (step.stores) waits.insert(chunk.readers.begin(), chunk.readers.end());
    }
    std::vector<StepId> ready(waits.begin(), waits.end());
    const bool is_first_value = algorithm_.in_place && !chunks_[piece.first].is_written;
    BufferRange value{is_first_value ? Buffer::kInput : step.from, piece};
    if (step.receives || step.copies) {
      std::vector<Source> sources;
      if (step.copies || step.reduces) sources.push_back({Source::Kind::kLocal, value});
      if (step.receives) sources.push_back({Source::Kind::kMessage, {}, block.recv, kNoRail});
      value = target(step, piece);
      const Step made = step_of(block, step.reduces ? StepOp::kReduce : StepOp::kCopy, step.reduces,
                                step.receive_round + p, value);
      ready = {writer_.add(made, sources, writer_.after(ready))};
      done.push_back(ready.front());
      note_access(step, piece, ready.front());
    }
    if (step.sends) {
      Step made = step_of(block, StepOp::kSend, step.receiver->reduces, step.send_round + p,
                          target(*step.receiver, piece));
      made.peer = block.send;
      done.push_back(writer_.add(made, {Source{Source::Kind::kLocal, value}}, writer_.after(ready)));
      for (BlockIdx each = piece.first; step.scratch_row < 0 && each < piece.end(); ++each)
        chunks_[each].readers.push_back(done.back());
    }
  }

  /// Records that plan step `id` reads or writes the chunks of a piece.
  void note_access(const MscclStep& step, BlockRange piece, StepId id) {
    for (BlockIdx each = piece.first; each < piece.end(); ++each) {
      Chunk& chunk = chunks_[each];
      if (step.stores) {
        chunk = {.is_written = true, .is_computed = step.reduces, .writer = id, .readers = {}};
      } else {
        chunk.readers.push_back(id);
      }
    }
  }

  /// Where a step stores a piece of what it receives.
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

  /// A single rank has no step in the file, but a plan must copy its input to its output.
  void copy_unwritten() {
    for (BlockIdx chunk = 0; chunk < algorithm_.num_chunks; ++chunk) {
      if (chunks_[chunk].is_written) continue;
      Step copy;
      copy.op = StepOp::kCopy;
      copy.phase = Phase::kGather;
      copy.stage = 1;
      copy.level = -1;
      copy.dst = {Buffer::kOutput, {chunk, 1}};
      writer_.add(copy, {Source{Source::Kind::kLocal, {Buffer::kInput, {chunk, 1}}}}, {});
      writer_.own({chunk, 1});
    }
  }

  void own_computed() {
    BlockRange run;
    for (std::size_t chunk = 0; chunk <= chunks_.size(); ++chunk) {
      if (chunk < chunks_.size() && chunks_[chunk].is_computed) {
        if (run.count == 0) run.first = static_cast<BlockIdx>(chunk);
        ++run.count;
        continue;
      }
      writer_.own(run);
      run = {};
    }
  }

  MscclAlgorithm& algorithm_;
  const MscclGpu& gpu_;
  ProgramWriter writer_;
  /// By thread block and step: the plan steps that a step waits for if it waits for this one.
  std::vector<std::vector<std::vector<StepId>>> ended_;
  std::vector<Chunk> chunks_;
};

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
      plan.programs.push_back(GpuProgram(algorithm_, static_cast<Rank>(gpu)).make());
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

  /// Cuts steps into pieces where chunks that were written meet chunks that were not, which are read from the
  /// input. Assigns rows of scratch to sums that are only passed on.
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

  /// Orders the steps of every GPU so that all of them can run one after the other: receives come after their
  /// sends. Steps that can never run keep their order; the checker reports the deadlock.
  void order_all() {
    std::vector<std::vector<MscclGpu::At>> order(algorithm_.gpus.size());
    std::vector<std::vector<std::int32_t>> next(order.size());
    for (std::size_t g = 0; g < order.size(); ++g) next[g].assign(algorithm_.gpus[g].blocks.size(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t g = 0; g < order.size(); ++g) {
        for (std::size_t b = 0; b < next[g].size(); ++b) {
          auto& steps = algorithm_.gpus[g].blocks[b].steps;
          for (std::int32_t& at = next[g][b]; at < static_cast<std::int32_t>(steps.size()); ++at) {
            MscclStep& step = steps[at];
            const bool own = step.dep_block == static_cast<std::int32_t>(b);
            if (step.dep_block >= 0 && !own && next[g][step.dep_block] <= step.dep_step) break;
            if (step.receives && !step.sender->done) break;
            step.done = progress = true;
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
        if (step.receives) channels[{block.recv, static_cast<Rank>(g), block.lane}].received.push_back(&step);
      }
    }
    for (auto& [name, ends] : channels) {
      const auto& [sender, receiver, channel] = name;
      if (ends.sent.size() != ends.received.size()) {
        const MscclStep* alone = ends.sent.size() > ends.received.size() ? ends.sent[ends.received.size()]
                                                                         : ends.received[ends.sent.size()];
        return fail(
            Code::kInvalidArgument,
            fmt::format(
                "msccl: line {}: {} messages from gpu {} to gpu {} on channel {} are sent, but {} received",
                alone->line, ends.sent.size(), sender, receiver, channel, ends.received.size()));
      }
      for (std::size_t i = 0; i < ends.sent.size(); ++i) {
        MscclStep& sent = *ends.sent[i];
        const MscclStep& received = *ends.received[i];
        if (sent.chunks != received.chunks) {
          return fail(Code::kInvalidArgument,
                      fmt::format("msccl: line {}: chunks {} to {} are received, but line {} sends {} to {}",
                                  received.line, received.chunks.first, received.chunks.end() - 1, sent.line,
                                  sent.chunks.first, sent.chunks.end() - 1));
        }
        sent.receiver = &received;
        ends.received[i]->sender = &sent;
      }
    }
    return {};
  }

  /// Cuts the two ends of each message at the same places, and numbers the pieces.
  void cut_alike() {
    auto& channels = channels_;
    // A step that receives and sends passes its cuts on: each pass moves them one message further.
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [name, ends] : channels) {
        for (std::size_t i = 0; i < ends.sent.size(); ++i) {
          auto& sent = ends.sent[i]->cuts;
          auto& received = ends.received[i]->cuts;
          if (sent == received) continue;
          std::vector<BlockIdx> both;
          std::ranges::set_union(sent, received, std::back_inserter(both));
          sent = received = std::move(both);
          changed = true;
        }
      }
    }
    for (auto& [name, ends] : channels) {
      std::int32_t round = 0;
      for (std::size_t i = 0; i < ends.sent.size(); ++i) {
        ends.sent[i]->send_round = ends.received[i]->receive_round = round;
        round += static_cast<std::int32_t>(ends.sent[i]->cuts.size());
      }
    }
  }

  /// The length of the longest chain of messages. Of a plan with a deadlock, steps that cannot run do not
  /// count.
  static std::int32_t longest_chain(const Plan& plan) {
    std::map<std::tuple<Rank, Rank, std::int32_t, std::int32_t, std::int32_t>, std::int32_t> sent;
    std::vector<std::vector<std::int32_t>> chain(plan.programs.size());
    std::int32_t longest = 0;
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
        const Program& program = plan.programs[rank];
        while (chain[rank].size() < program.steps.size()) {
          const Step& step = program.steps[chain[rank].size()];
          std::int32_t length = 0;
          bool is_complete = true;
          for (const StepId earlier : program.after(step)) length = std::max(length, chain[rank][earlier]);
          for (const Source& source : program.sources_of(step)) {
            if (source.kind != Source::Kind::kMessage) continue;
            const auto found = sent.find({source.peer, program.rank, step.lane, step.stage, step.round});
            is_complete = is_complete && found != sent.end();
            if (is_complete) length = std::max(length, found->second);
          }
          if (!is_complete) break;
          if (step.op == StepOp::kSend)
            sent[{program.rank, step.peer, step.lane, step.stage, step.round}] = ++length;
          longest = std::max(longest, length);
          // The local completion of a send does not make the chain longer; only its message does.
          chain[rank].push_back(step.op == StepOp::kSend ? length - 1 : length);
          progress = true;
        }
      }
    }
    return longest;
  }

  /// The steps at both ends of a channel, in order.
  struct Ends {
    std::vector<MscclStep*> sent, received;
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
