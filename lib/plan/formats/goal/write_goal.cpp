#include "lib/plan/formats/goal/write_goal.hpp"

#include <cmath>
#include <ostream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace hips::plan {
namespace {

/// Every builder's plan has fewer rounds per stage and fewer stages per lane than this. Of the 63 bits of a
/// tag the rest is for the lane.
constexpr std::int64_t kTagBase = std::int64_t{1} << 20U;

}  // namespace

GoalWriter::GoalWriter(std::ostream& out, const PlanShape& shape, GoalVolume volume)
    : out_(out), shape_(shape), volume_(volume) {
  fmt::print(out_, "num_ranks {}\n", shape.num_ranks);
}

std::int64_t GoalWriter::bytes(const BufferRange& range) const {
  std::int64_t elements = 0;
  if (range.buffer != Buffer::kScratch) {
    elements = shape_.blocks.elements(range.blocks, volume_.count);
  } else {
    // Scratch repeats the sizes of the vector's blocks.
    for (BlockIdx block = range.blocks.first; block < range.blocks.end(); ++block)
      elements += shape_.blocks.elements({block % shape_.blocks.num_blocks, 1}, volume_.count);
  }
  return elements * volume_.element_bytes;
}

std::int64_t GoalWriter::tag(const Step& step) const {
  return (static_cast<std::int64_t>(step.lane) * kTagBase + step.stage) * kTagBase + step.round;
}

void GoalWriter::add(const Program& program) {
  fmt::print(out_, "rank {} {{\n", program.rank);
  std::int64_t label = 0;
  // The label of the line that ends a step. -1: the step has no line, and steps after it require what it
  // would have waited for (`before`).
  std::vector<std::int64_t> ended(program.steps.size(), -1);
  std::vector<std::vector<std::int64_t>> before(program.steps.size());
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    std::vector<std::int64_t> requires_labels;
    for (const StepId earlier : program.after(step)) {
      const auto at = static_cast<std::size_t>(earlier);
      if (ended[at] >= 0) {
        requires_labels.push_back(ended[at]);
      } else {
        requires_labels.insert(requires_labels.end(), before[at].begin(), before[at].end());
      }
    }
    const std::int64_t size = bytes(step.dst);
    if (size == 0) {
      before[i] = std::move(requires_labels);
      continue;
    }
    const auto nic = [](Rail rail) { return rail == kNoRail ? std::string() : fmt::format(" nic {}", rail); };
    if (step.op == StepOp::kSend) {
      fmt::print(out_, "l{}: send {}b to {} tag {} cpu 0{}\n", label, size, step.peer, tag(step),
                 nic(step.rail));
      for (const std::int64_t earlier : requires_labels)
        fmt::print(out_, "l{} requires l{}\n", label, earlier);
      ended[i] = label++;
      continue;
    }
    // Receives require nothing: messages may arrive before the step can run.
    for (const Source& source : program.sources_of(step)) {
      if (source.kind != Source::Kind::kMessage) continue;
      fmt::print(out_, "l{}: recv {}b from {} tag {} cpu 0{}\n", label, size, source.peer, tag(step),
                 nic(source.rail));
      requires_labels.push_back(label++);
    }
    const double reduced = static_cast<double>(size) * (step.num_sources - 1);
    fmt::print(out_, "l{}: calc {}\n", label, std::llround(reduced / volume_.reduce_bytes_per_s * 1e9));
    for (const std::int64_t earlier : requires_labels) fmt::print(out_, "l{} requires l{}\n", label, earlier);
    ended[i] = label++;
  }
  out_ << "}\n";
}

}  // namespace hips::plan
