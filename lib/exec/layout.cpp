#include "lib/exec/layout.hpp"

#include <algorithm>
#include <utility>

namespace hips::exec {
namespace {

/// First element of each block, for one vector length.
class BlockOffsets {
 public:
  BlockOffsets(const BlockMap& blocks, std::int64_t count, const std::vector<std::int64_t>* boundaries)
      : blocks_(blocks), count_(count), boundaries_(boundaries) {}

  [[nodiscard]] std::int64_t boundary(BlockIdx block) const {
    return boundaries_ != nullptr ? (*boundaries_)[static_cast<std::size_t>(block)]
                                  : blocks_.boundary(block, count_);
  }
  // Scratch block s is as large as block s mod num_blocks, so scratch consists of rows of whole vectors.
  [[nodiscard]] std::int64_t element_of(Buffer buffer, BlockIdx block) const {
    if (buffer != Buffer::kScratch || blocks_.num_blocks == 0) return boundary(block);
    return block / blocks_.num_blocks * count_ + boundary(block % blocks_.num_blocks);
  }

 private:
  const BlockMap& blocks_;
  std::int64_t count_;
  const std::vector<std::int64_t>* boundaries_;
};

// The range that an `after` edge protects: what a send reads, and what other steps write.
const BufferRange& footprint(const Program& program, const Step& step) {
  return step.op == StepOp::kSend ? program.sources[step.first_source].local : step.dst;
}

}  // namespace

Layout Layout::of(const CompiledProgram& compiled, std::uint64_t count, std::size_t element_bytes,
                  std::size_t segment_bytes, Boundaries boundaries) {
  const Program& program = *compiled.program;
  const BlockMap& blocks = compiled.shape->blocks;
  const auto signed_count = static_cast<std::int64_t>(count);
  const BlockOffsets offsets(blocks, signed_count, boundaries.get());
  Layout layout;
  layout.count = count;
  layout.boundaries = std::move(boundaries);
  layout.element_bytes = element_bytes;
  layout.segment_elements =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(segment_bytes / element_bytes));
  if (blocks.num_blocks > 0) {
    layout.scratch_elements =
        (blocks.num_scratch_blocks + blocks.num_blocks - 1) / blocks.num_blocks * signed_count;
  }
  layout.steps.resize(program.steps.size());
  layout.target_first.assign(program.steps.size(), -1);
  layout.source_first.assign(program.sources.size(), 0);
  layout.first_message.assign(program.sources.size(), 0);
  layout.first_dep.reserve(program.steps.size() + 1);
  layout.in_totals.assign(compiled.num_in(), 0);
  layout.out_totals.assign(compiled.num_out(), 0);

  for (std::size_t id = 0; id < program.steps.size(); ++id) {
    const Step& step = program.steps[id];
    const BufferRange& range = footprint(program, step);
    StepLayout& at = layout.steps[id];
    at.first = offsets.element_of(range.buffer, range.blocks.first);
    at.elements = offsets.element_of(range.buffer, range.blocks.end()) - at.first;
    at.segments =
        static_cast<std::int32_t>((at.elements + layout.segment_elements - 1) / layout.segment_elements);
    // Gather messages are final values (the checker proves it), and their receivers copy them to `dst`.
    if (step.op == StepOp::kSend && step.phase == Phase::kGather && step.dst.buffer == Buffer::kOutput)
      layout.target_first[id] = offsets.boundary(step.dst.blocks.first);
    if (at.elements > 0) ++layout.live_steps;
    for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
      const Source& source = program.sources[s];
      if (source.kind == Source::Kind::kLocal) {
        layout.source_first[s] = offsets.element_of(source.local.buffer, source.local.blocks.first);
      }
    }
    layout.first_dep.push_back(static_cast<std::int32_t>(layout.deps.size()));
    for (const StepId dep : program.after(step)) {
      const BufferRange& other = footprint(program, program.steps[dep]);
      const bool scratch = range.buffer == Buffer::kScratch || other.buffer == Buffer::kScratch;
      const bool overlap = other.blocks.first < range.blocks.end() && range.blocks.first < other.blocks.end();
      layout.deps.push_back({dep, scratch || !overlap});
    }
  }
  layout.first_dep.push_back(static_cast<std::int32_t>(layout.deps.size()));
  for (std::size_t channel = 0; channel < compiled.num_in(); ++channel) {
    for (const Receive& receive : compiled.receives_of(channel)) {
      layout.first_message[receive.source] = layout.in_totals[channel];
      layout.in_totals[channel] += static_cast<std::uint32_t>(layout.steps[receive.step].segments);
    }
  }
  for (std::size_t channel = 0; channel < compiled.num_out(); ++channel) {
    for (const StepId id : compiled.sends_of(channel)) {
      layout.out_totals[channel] += static_cast<std::uint32_t>(layout.steps[id].segments);
    }
  }
  return layout;
}

}  // namespace hips::exec
