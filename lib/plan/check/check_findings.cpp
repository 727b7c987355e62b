#include "lib/plan/check/check_findings.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hips::plan {

const char* to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::kMalformed:
      return "malformed plan";
    case FindingKind::kTooLarge:
      return "too large to check";
    case FindingKind::kNoLink:
      return "no link";
    case FindingKind::kUnmatched:
      return "unmatched transfer";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kOverlap:
      return "overlapping access";
    case FindingKind::kUnwritten:
      return "unwritten block";
    case FindingKind::kLost:
      return "lost contribution";
    case FindingKind::kDoubled:
      return "doubled contribution";
    case FindingKind::kOwner:
      return "owner mismatch";
    case FindingKind::kUnequalLoad:
      return "unequal load";
    case FindingKind::kFanIn:
      return "fan-in";
  }
  return "?";
}

std::int64_t CheckReport::num_errors() const {
  std::int64_t errors = 0;
  for (std::size_t kind = 0; kind < kNumFindingKinds; ++kind) {
    if (severity_of(static_cast<FindingKind>(kind)) == Severity::kError) errors += num_found[kind];
  }
  return errors;
}

bool CheckReport::ok() const {
  return num_errors() == 0;
}

void Findings::report(FindingKind kind, PlanPlace where, std::string text, std::vector<std::string> example) {
  report_.findings.push_back({kind, where, std::move(text), std::move(example)});
}

bool Findings::named_by_address() const {
  return options_.topology != nullptr && options_.topology->num_ranks() == plan_.shape.num_ranks;
}

std::string Findings::rank_name(Rank rank) const {
  if (!named_by_address()) return fmt::format("rank {}", rank);
  const bool one_per_server = options_.topology->ranks_per_server == 1;
  return fmt::format("{} {}", one_per_server ? "server" : "rank", options_.topology->address(rank));
}

std::string Findings::rank_names(std::span<const Rank> ranks) const {
  constexpr std::size_t kMost = 4;
  if (ranks.size() == 1) return rank_name(ranks[0]);
  std::string text = named_by_address() && options_.topology->ranks_per_server == 1 ? "servers " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    if (i > 0) text += ", ";
    text += named_by_address() ? options_.topology->address(ranks[i]) : fmt::to_string(ranks[i]);
  }
  if (ranks.size() > kMost) text += fmt::format(" and {} more", ranks.size() - kMost);
  return text;
}

std::string Findings::stage_name(const Step& step) {
  return fmt::format("lane {}, {} stage {}, round {}", step.lane,
                     step.phase == Phase::kScatter ? "scatter" : "gather", step.stage, step.round);
}

std::string Findings::step_name(Rank rank, StepId id) const {
  const Step& step = plan_.programs[rank].steps[id];
  std::string what;
  switch (step.op) {
    case StepOp::kSend:
      what = fmt::format("send to {}", rank_name(step.peer));
      break;
    case StepOp::kReduce:
      what = "reduce";
      break;
    case StepOp::kCopy:
      what = "copy";
      break;
  }
  return fmt::format("step {} ({}, {}, {})", id, what, stage_name(step), range_name(step.dst));
}

PlanPlace Findings::place(Rank rank, StepId id, const Step& step, BlockIdx block) {
  return {
      .rank = rank, .step = id, .lane = step.lane, .stage = step.stage, .round = step.round, .block = block};
}

std::string range_name(const BufferRange& range) {
  const char* space = range.buffer == Buffer::kScratch ? "scratch " : "";
  if (range.blocks.count == 1) return fmt::format("{}block {}", space, range.blocks.first);
  return fmt::format("{}blocks {}-{}", space, range.blocks.first, range.blocks.end() - 1);
}

}  // namespace hips::plan
