#include "lib/plan/formats/msccl/write_msccl.hpp"

#include <algorithm>
#include <map>
#include <ostream>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace hips::plan {
namespace {

/// A step of a thread block.
struct ExportedStep {
  const char* type = "nop";
  BufferRange range;  ///< of both ends, as blocks stay in place
  std::int32_t dep_block = -1, dep_step = -1;
  bool has_dep = false;  ///< another step waits for it
};

struct ThreadBlock {
  Rank send = -1, recv = -1;
  std::int32_t lane = 0;
  std::vector<ExportedStep> steps;
};

/// The position of a step: its thread block and its place there.
using At = std::pair<std::int32_t, std::int32_t>;

std::string attribute(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    out += plain ? c : '_';
  }
  return out;
}

class GpuWriter {
 public:
  explicit GpuWriter(const Program& program) : program_(program), ended_(program.steps.size()) {}

  Status convert() {
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      std::vector<At> waits;
      for (const StepId earlier : program_.after(step)) {
        const auto& each = ended_[static_cast<std::size_t>(earlier)];
        waits.insert(waits.end(), each.begin(), each.end());
      }
      bool has_value = false;
      std::vector<const Source*> messages;
      for (const Source& source : program_.sources_of(step)) {
        if (source.kind == Source::Kind::kMessage) {
          messages.push_back(&source);
          continue;
        }
        const bool same = source.local.blocks == step.dst.blocks && source.local.buffer != Buffer::kScratch &&
                          step.dst.buffer != Buffer::kScratch;
        if (!same) {
          return Status::error(
              Code::kUnsupported,
              fmt::format("msccl: step {} of rank {} moves local data; only plans whose blocks "
                          "stay in place can be exported",
                          i, program_.rank));
        }
        has_value = true;
      }
      if (step.op == StepOp::kSend) {
        ended_[i] = {add(step.peer, -1, step, "s", waits)};
        continue;
      }
      // In the order of the operands, one after the other.
      for (const Source* message : messages) {
        waits = {add(-1, message->peer, step, has_value ? "rrc" : "r", waits)};
        has_value = true;
      }
      // A step without messages writes nothing; steps after it wait for what it would have waited for.
      ended_[i] = std::move(waits);
    }
    return Status::success();
  }

  void write(std::ostream& out, std::int64_t blocks, std::int64_t scratch) const {
    fmt::print(out, "  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", program_.rank,
               blocks, blocks, scratch);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const ThreadBlock& block = blocks_[b];
      fmt::print(out, "    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", b, block.send, block.recv,
                 block.lane);
      for (std::size_t s = 0; s < block.steps.size(); ++s) {
        const ExportedStep& step = block.steps[s];
        fmt::print(out,
                   "      <step s=\"{}\" type=\"{}\" srcbuf=\"i\" srcoff=\"{}\" dstbuf=\"i\" dstoff=\"{}\" "
                   "cnt=\"{}\" "
                   "depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
                   s, step.type, step.range.blocks.first, step.range.blocks.first, step.range.blocks.count,
                   step.dep_block, step.dep_step, step.has_dep ? 1 : 0);
      }
      out << "    </tb>\n";
    }
    out << "  </gpu>\n";
  }

 private:
  At add(Rank send, Rank recv, const Step& step, const char* type, std::vector<At> waits) {
    const auto [known, is_new] =
        block_of_.emplace(std::tuple(step.lane, send, recv), static_cast<std::int32_t>(blocks_.size()));
    if (is_new) blocks_.push_back({send, recv, step.lane, {}});
    const std::int32_t own = known->second;
    auto& steps = blocks_[static_cast<std::size_t>(own)].steps;
    // The last step of each other thread block is enough, as its steps run one after the other.
    std::map<std::int32_t, std::int32_t> last;
    for (const auto& [block, at] : waits) {
      if (block != own) last[block] = std::max(last[block], at);
    }
    ExportedStep made;
    for (const auto& [block, at] : last) {
      blocks_[static_cast<std::size_t>(block)].steps[static_cast<std::size_t>(at)].has_dep = true;
      if (made.dep_block >= 0) steps.push_back(made);
      made.dep_block = block;
      made.dep_step = at;
    }
    made.type = type;
    made.range = step.dst;
    steps.push_back(made);
    return {own, static_cast<std::int32_t>(steps.size()) - 1};
  }

  const Program& program_;
  std::vector<std::vector<At>> ended_;  ///< by step of the plan: the exported steps after which it has ended
  std::vector<ThreadBlock> blocks_;
  std::map<std::tuple<std::int32_t, Rank, Rank>, std::int32_t> block_of_;
};

}  // namespace

Status write_msccl(std::ostream& out, const PlanBuilder& builder) {
  const PlanShape& shape = builder.shape();
  if (shape.blocks.num_scratch_blocks > 0) {
    return Status::error(
        Code::kUnsupported,
        fmt::format("msccl: \"{}\" uses scratch memory; only plans whose blocks stay in place can be "
                    "exported",
                    shape.description));
  }
  if (shape.blocks.parts.size() > 1) {
    return Status::error(
        Code::kUnsupported,
        fmt::format("msccl: the lanes of \"{}\" have unequal shares, but all chunks have the same size; "
                    "choose a topology of equal levels or another algorithm",
                    shape.description));
  }
  fmt::print(out,
             "<algo name=\"hips_{}\" proto=\"Simple\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" "
             "coll=\"allreduce\" inplace=\"1\" outofplace=\"0\" minBytes=\"0\" maxBytes=\"0\">\n",
             attribute(shape.algorithm), std::max<std::size_t>(shape.lanes.size(), 1),
             shape.blocks.num_blocks, shape.num_ranks);
  for (Rank rank = 0; rank < shape.num_ranks; ++rank) {
    const Program program = builder.program(rank);
    GpuWriter gpu(program);
    if (Status status = gpu.convert(); !status.ok()) return status;
    gpu.write(out, shape.blocks.num_blocks, shape.blocks.num_scratch_blocks);
  }
  out << "</algo>\n";
  return Status::success();
}

}  // namespace hips::plan
