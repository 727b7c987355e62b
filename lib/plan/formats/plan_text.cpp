#include "lib/plan/formats/plan_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "lib/base/counted.hpp"
#include "lib/plan/wide.hpp"

namespace hips::plan {
namespace {

/// A lane's share of the vector in lowest terms.
std::string share_text(const BlockMap& map, const LaneInfo& lane) {
  for (const BlockMap::Part& part : map.parts) {
    if (lane.blocks.first < part.blocks.first || lane.blocks.end() > part.blocks.end()) continue;
    const Int128 length = static_cast<Int128>(part.end.num) * part.begin.den -
                          static_cast<Int128>(part.begin.num) * part.end.den;
    Int128 num = length * lane.blocks.count;
    Int128 den = static_cast<Int128>(part.begin.den) * part.end.den * part.blocks.count;
    for (Int128 a = num, b = den; true;) {
      if (b == 0) {
        num /= a;
        den /= a;
        break;
      }
      const Int128 rest = a % b;
      a = b;
      b = rest;
    }
    if (den == 1) return "all of the vector";
    if (den < 1'000'000) {
      return fmt::format("{}/{} of the vector", static_cast<std::int64_t>(num),
                         static_cast<std::int64_t>(den));
    }
    return fmt::format("{:.4f} of the vector", static_cast<double>(num) / static_cast<double>(den));
  }
  return "no share of its own";
}

std::string blocks_text(const BlockRange& range) {
  return range.count == 1 ? fmt::format("block {}", range.first)
                          : fmt::format("blocks {}-{}", range.first, range.end() - 1);
}

std::string pattern_text(const StageInfo& stage) {
  switch (stage.pattern) {
    case Pattern::kMesh:
      return "mesh";
    case Pattern::kRing:
      return "ring";
    case Pattern::kPs:
      return fmt::format("ps:{}", stage.num_leaders);
  }
  return "";
}

const char* phase_text(Phase phase) {
  return phase == Phase::kScatter ? "scatter" : "gather";
}

/// "level 0", "level x". Names such as "level0" already contain the word.
std::string level_text(const Topology& topology, std::int32_t level) {
  if (level < 0 || level >= std::ssize(topology.levels)) return "";
  const std::string& name = topology.levels[static_cast<std::size_t>(level)].name;
  return name.starts_with("level") ? name : fmt::format("level {}", name);
}

class ProgramText {
 public:
  ProgramText(const PlanShape& shape, const Program& program, const Topology& topology, TextVolume volume)
      : shape_(shape), program_(program), topology_(topology), volume_(volume) {
    who_ = fmt::format("{} {}", topology.ranks_per_server > 1 ? "rank" : "server",
                       topology.address(program.rank));
  }

  std::string text() {
    for (std::int32_t lane = 0; lane < std::ssize(shape_.lanes); ++lane) {
      line("{}, lane {}\n", who_, lane);
      for (const Step& step : program_.steps) {
        if (step.lane == lane) add(step);
      }
    }
    std::string owned;
    for (const BlockRange& range : program_.owned) {
      owned += fmt::format("{}{}", owned.empty() ? "" : ", ", blocks_text(range));
    }
    line("{} owns {}\n", who_, owned.empty() ? "no block" : owned);
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] std::int64_t bytes(const BlockRange& range) const {
    // Scratch block s has the size of block s % num_blocks.
    const BlockIdx first = range.first % std::max<BlockIdx>(1, shape_.blocks.num_blocks);
    return shape_.blocks.elements({first, range.count}, volume_.count) * volume_.element_bytes;
  }

  /// "blocks 3-5, 1.3 MiB"
  [[nodiscard]] std::string what(const BufferRange& range) const {
    const std::int64_t size = bytes(range.blocks);
    return fmt::format("{}{}, {}", range.buffer == Buffer::kScratch ? "scratch " : "",
                       blocks_text(range.blocks), size == 0 ? "empty" : bytes_text(size));
  }

  /// ", NIC 0"; nothing inside a server.
  static std::string nic(Rail rail) { return rail == kNoRail ? "" : fmt::format(", NIC {}", rail); }

  /// "server <01>: gather stage 3, level 0"; stages of a lane are numbered through, as in JSON, traces and errors.
  [[nodiscard]] std::string where(const Step& step) const {
    std::string text = fmt::format("{}: {} stage {}", who_, phase_text(step.phase), step.stage);
    if (const std::string level = level_text(topology_, step.level); !level.empty()) text += ", " + level;
    const std::vector<StageInfo>& stages = shape_.lanes[static_cast<std::size_t>(step.lane)].stages;
    const bool in_rounds = step.stage < std::ssize(stages) &&
                           stages[static_cast<std::size_t>(step.stage)].pattern == Pattern::kRing;
    if (in_rounds || step.round > 0) text += fmt::format(", round {}", step.round);
    return text;
  }

  void add(const Step& step) {
    if (step.op == StepOp::kSend) {
      line("{}, to {}: {}{}\n", where(step), topology_.address(step.peer), what(step.dst), nic(step.rail));
      return;
    }
    // One line for all messages that are reduced in one pass, with the NICs by which they arrive.
    std::string from, rails;
    bool has_local = false;
    for (const Source& source : program_.sources_of(step)) {
      if (source.kind == Source::Kind::kLocal) {
        has_local = true;
        continue;
      }
      from += fmt::format("{}{}", from.empty() ? "" : " ", topology_.address(source.peer));
      const std::string rail = nic(source.rail);
      if (rails.find(rail) == std::string::npos) rails += rail;
    }
    if (from.empty()) {
      line("{}: {} {}\n", who_, step.op == StepOp::kReduce ? "reduces" : "copies", what(step.dst));
      return;
    }
    line("{}, from {}: {}{}{}\n", where(step), from, what(step.dst), rails,
         step.op == StepOp::kReduce && has_local ? ", reduced into its own" : "");
  }

  const PlanShape& shape_;
  const Program& program_;
  const Topology& topology_;
  TextVolume volume_;
  std::string who_;
  std::string text_;
};

}  // namespace

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would print as 1024.0.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (value == std::floor(value)) return fmt::format("{:.0f} {}", value, kUnits[unit]);
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string shape_text(const PlanShape& shape, const Topology& topology, TextVolume volume) {
  std::string text =
      fmt::format("{}\n{}, {}, {}, {}, {}\n", shape.description, topology.name,
                  counted(shape.num_ranks, "rank"), bytes_text(volume.count * volume.element_bytes),
                  counted(shape.blocks.num_blocks, "block"), counted(shape.num_steps, "step"));
  const bool has_rings = std::ranges::any_of(topology.levels, [](const Level& level) {
    return level.kind == LevelKind::kRing && level.rails.size() > 1;
  });
  for (std::size_t lane = 0; lane < shape.lanes.size(); ++lane) {
    const LaneInfo& info = shape.lanes[lane];
    fmt::format_to(std::back_inserter(text), "lane {}: {}, {}", lane, blocks_text(info.blocks),
                   share_text(shape.blocks, info));
    if (has_rings) text += info.direction > 0 ? ", direction +" : ", direction -";
    Phase phase = Phase::kScatter;
    bool first = true;
    for (const StageInfo& stage : info.stages) {
      text += first || stage.phase != phase ? fmt::format("; {} ", phase_text(stage.phase)) : ", ";
      first = false;
      phase = stage.phase;
      const std::string level = level_text(topology, stage.level);
      fmt::format_to(std::back_inserter(text), "{}{}{}", level, level.empty() ? "" : " ",
                     pattern_text(stage));
    }
    text += "\n";
  }
  return text;
}

std::string program_text(const PlanShape& shape, const Program& program, const Topology& topology,
                         TextVolume volume) {
  return ProgramText(shape, program, topology, volume).text();
}

}  // namespace hips::plan
