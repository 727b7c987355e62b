#include "lib/plan/formats/plan_json.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <ostream>
#include <span>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "lib/plan/steps/program_writer.hpp"

namespace hips::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 3> kOps = {"send", "reduce", "copy"};
constexpr std::array<const char*, 2> kPhases = {"scatter", "gather"};
constexpr std::array<const char*, 3> kPatterns = {"mesh", "ring", "ps"};
constexpr std::array<const char*, 3> kBuffers = {"input", "output", "scratch"};

template <typename Enum, std::size_t N>
const char* name_of(const std::array<const char*, N>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

Json json_of(const BlockRange& range) {
  return Json::array({range.first, range.count});
}
Json json_of(const Fraction& fraction) {
  return Json::array({fraction.num, fraction.den});
}
Json json_of(const BufferRange& range) {
  return Json::array({name_of(kBuffers, range.buffer), range.blocks.first, range.blocks.count});
}
Json json_of(const Source& source) {
  if (source.kind == Source::Kind::kLocal) return json_of(source.local);
  return Json{{"peer", source.peer}, {"rail", source.rail}};
}

Json json_of(const Program& program, const Step& step) {
  Json json{{"op", name_of(kOps, step.op)},
            {"phase", name_of(kPhases, step.phase)},
            {"lane", step.lane},
            {"stage", step.stage},
            {"level", step.level},
            {"round", step.round}};
  if (step.op == StepOp::kSend) {
    json["peer"] = step.peer;
    json["rail"] = step.rail;
  }
  json["dst"] = json_of(step.dst);
  json["srcs"] = Json::array();
  for (const Source& source : program.sources_of(step)) json["srcs"].push_back(json_of(source));
  json["after"] = program.after(step);
  return json;
}

Json json_of(const LaneInfo& lane) {
  Json stages = Json::array();
  for (const StageInfo& stage : lane.stages) {
    stages.push_back(Json{{"phase", name_of(kPhases, stage.phase)},
                          {"level", stage.level},
                          {"pattern", name_of(kPatterns, stage.pattern)},
                          {"num_leaders", stage.num_leaders}});
  }
  return Json{{"blocks", json_of(lane.blocks)}, {"direction", lane.direction}, {"stages", std::move(stages)}};
}

/// Thrown inside the reader only; from_json() turns it into a Status.
struct ReadError {
  Code code;
  std::string message;
};

/// A short text of any value, for errors.
std::string seen(const Json& json) {
  std::string text =
      json.is_structured()
          ? fmt::format("{} of {} values", json.is_array() ? "an array" : "an object", json.size())
          : json.dump(-1, ' ', true, Json::error_handler_t::replace);
  constexpr std::size_t kLongest = 40;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

/// A value of the file and its path, "programs[3].steps[17].peer", which is formatted only for an error.
class Value {
 public:
  Value(const Json& json, const Value* parent, std::string_view key)
      : json_(json), parent_(parent), key_(key) {}
  Value(const Json& json, const Value* parent, std::size_t index)
      : json_(json), parent_(parent), index_(index) {}

  [[noreturn]] void fail(std::string_view wanted) const {
    throw ReadError{Code::kInvalidArgument,
                    fmt::format("plan file: {} is {}; it must be {}", path(), seen(json_), wanted)};
  }

  [[nodiscard]] std::int64_t integer(std::int64_t min, std::int64_t max) const {
    const bool fits =
        json_.is_number_integer() &&
        (!json_.is_number_unsigned() ||
         json_.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    const std::int64_t value = fits ? json_.get<std::int64_t>() : 0;
    if (!fits || value < min || value > max) fail(fmt::format("a whole number from {} to {}", min, max));
    return value;
  }
  [[nodiscard]] std::int32_t index(std::int32_t min) const {
    return static_cast<std::int32_t>(integer(min, std::numeric_limits<std::int32_t>::max()));
  }
  [[nodiscard]] std::string string() const {
    if (!json_.is_string()) fail("a string");
    return json_.get<std::string>();
  }
  [[nodiscard]] bool boolean() const {
    if (!json_.is_boolean()) fail("true or false");
    return json_.get<bool>();
  }
  template <typename Enum, std::size_t N>
  [[nodiscard]] Enum one_of(const std::array<const char*, N>& names) const {
    if (json_.is_string()) {
      for (std::size_t i = 0; i < N; ++i) {
        if (json_.get_ref<const std::string&>() == names[i]) return static_cast<Enum>(i);
      }
    }
    fail(fmt::format("one of {}", fmt::join(names, ", ")));
  }

  [[nodiscard]] bool is_object() const { return json_.is_object(); }
  /// An array of any length, or of exactly `size` values.
  [[nodiscard]] std::size_t array(std::string_view wanted) const {
    if (!json_.is_array()) fail(wanted);
    return json_.size();
  }
  void array_of(std::size_t size, std::string_view wanted) const {
    if (array(wanted) != size) fail(wanted);
  }
  [[nodiscard]] Value at(std::size_t index) const { return {json_[index], this, index}; }

  /// Requires these keys; allows no other key except `optional`.
  void keys(std::initializer_list<std::string_view> names, std::string_view optional = {}) const {
    if (!json_.is_object()) fail(fmt::format("an object with the keys {}", fmt::join(names, ", ")));
    for (const auto& [key, value] : json_.items()) {
      if (std::find(names.begin(), names.end(), key) == names.end() &&
          (optional.empty() || key != optional)) {
        throw ReadError{Code::kInvalidArgument,
                        fmt::format("plan file: {} has the unknown key {}; expected {}", path(),
                                    seen(Json(key)), fmt::join(names, ", "))};
      }
    }
    for (const std::string_view name : names) static_cast<void>(at(name));
  }
  [[nodiscard]] Value at(std::string_view key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) {
      throw ReadError{Code::kInvalidArgument,
                      fmt::format("plan file: {} misses the key \"{}\"", path(), key)};
    }
    return {*found, this, key};
  }

 private:
  [[nodiscard]] std::string path() const {
    if (parent_ == nullptr) return "the file";
    const std::string before = parent_->parent_ == nullptr ? "" : parent_->path();
    if (key_.empty()) return fmt::format("{}[{}]", before, index_);
    return before.empty() ? std::string(key_) : fmt::format("{}.{}", before, key_);
  }

  const Json& json_;
  const Value* parent_;
  std::string_view key_;
  std::size_t index_ = 0;
};

constexpr std::int64_t kMostBlocks = std::int64_t{1} << 40;

BlockRange read_blocks(const Value& value, std::size_t at = 0) {
  return {value.at(at).integer(0, kMostBlocks), value.at(at + 1).integer(0, kMostBlocks)};
}

BlockRange read_block_range(const Value& value) {
  value.array_of(2, "[first block, number of blocks]");
  return read_blocks(value);
}

BufferRange read_buffer_range(const Value& value) {
  value.array_of(3, "[buffer, first block, number of blocks]");
  return {value.at(0).one_of<Buffer>(kBuffers), read_blocks(value, 1)};
}

Fraction read_fraction(const Value& value) {
  value.array_of(2, "[numerator, denominator]");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Fraction fraction{value.at(0).integer(0, kMost), value.at(1).integer(1, kMost)};
  if (fraction.num > fraction.den) value.fail("a fraction from 0 to 1");
  return fraction;
}

BlockMap read_block_map(const Value& value) {
  value.keys({"num_blocks", "num_scratch_blocks", "parts"});
  BlockMap map;
  map.num_blocks = value.at("num_blocks").integer(0, kMostBlocks);
  map.num_scratch_blocks = value.at("num_scratch_blocks").integer(0, kMostBlocks);
  const Value parts = value.at("parts");
  for (std::size_t i = 0; i < parts.array("an array of parts"); ++i) {
    const Value part = parts.at(i);
    part.keys({"blocks", "begin", "end"});
    map.parts.push_back({read_block_range(part.at("blocks")), read_fraction(part.at("begin")),
                         read_fraction(part.at("end"))});
  }
  return map;
}

LaneInfo read_lane(const Value& value) {
  value.keys({"blocks", "direction", "stages"});
  LaneInfo lane;
  lane.blocks = read_block_range(value.at("blocks"));
  lane.direction = static_cast<std::int32_t>(value.at("direction").integer(-1, 1));
  if (lane.direction == 0) value.at("direction").fail("1 or -1");
  const Value stages = value.at("stages");
  for (std::size_t i = 0; i < stages.array("an array of stages"); ++i) {
    const Value stage = stages.at(i);
    stage.keys({"phase", "level", "pattern", "num_leaders"});
    lane.stages.push_back({stage.at("phase").one_of<Phase>(kPhases), stage.at("level").index(-1),
                           stage.at("pattern").one_of<Pattern>(kPatterns), stage.at("num_leaders").index(0)});
  }
  return lane;
}

Source read_source(const Value& value) {
  Source source;
  if (!value.is_object()) {
    source.local = read_buffer_range(value);
    return source;
  }
  value.keys({"peer", "rail"});
  source.kind = Source::Kind::kMessage;
  source.peer = value.at("peer").index(0);
  source.rail = value.at("rail").index(kNoRail);
  return source;
}

void read_step(const Value& value, ProgramWriter& writer) {
  Step step;
  if (!value.is_object()) value.fail("an object that describes a step");
  step.op = value.at("op").one_of<StepOp>(kOps);
  if (step.op == StepOp::kSend) {
    value.keys({"op", "phase", "lane", "stage", "level", "round", "peer", "rail", "dst", "srcs", "after"});
    step.peer = value.at("peer").index(0);
    step.rail = value.at("rail").index(kNoRail);
  } else {
    value.keys({"op", "phase", "lane", "stage", "level", "round", "dst", "srcs", "after"});
  }
  step.phase = value.at("phase").one_of<Phase>(kPhases);
  step.lane = value.at("lane").index(0);
  step.stage = value.at("stage").index(0);
  step.level = value.at("level").index(-1);
  step.round = value.at("round").index(0);
  step.dst = read_buffer_range(value.at("dst"));
  std::vector<Source> sources;
  const Value srcs = value.at("srcs");
  for (std::size_t i = 0; i < srcs.array("an array of sources"); ++i)
    sources.push_back(read_source(srcs.at(i)));
  std::vector<StepId> after;
  const Value list = value.at("after");
  for (std::size_t i = 0; i < list.array("an array of earlier steps"); ++i)
    after.push_back(list.at(i).index(0));
  writer.add(step, sources, writer.after(after));
}

Program read_program(const Value& value, Rank rank) {
  value.keys({"rank", "owned", "steps"});
  if (value.at("rank").index(0) != rank)
    value.at("rank").fail(fmt::format("{}: programs must be in rank order", rank));
  ProgramWriter writer(rank);
  const Value steps = value.at("steps");
  for (std::size_t i = 0; i < steps.array("an array of steps"); ++i) read_step(steps.at(i), writer);
  Program program = writer.take();
  const Value owned = value.at("owned");
  for (std::size_t i = 0; i < owned.array("an array of block ranges"); ++i) {
    program.owned.push_back(read_block_range(owned.at(i)));
  }
  return program;
}

Plan read_plan(const Json& json) {
  const Value file(json, nullptr, std::string_view{});
  if (!json.is_object() || !json.contains("format") || json["format"] != "hips-plan") {
    throw ReadError{Code::kInvalidArgument, "plan file: not a plan: it must have \"format\": \"hips-plan\""};
  }
  const std::int64_t version = file.at("version").integer(0, std::numeric_limits<std::int32_t>::max());
  if (version != kPlanJsonVersion) {
    throw ReadError{Code::kMismatch, fmt::format("plan file: version {}; this build reads version {}",
                                                 version, kPlanJsonVersion)};
  }
  file.keys({"format", "version", "algorithm", "description", "num_ranks", "num_steps", "neighbours_only",
             "blocks", "lanes", "programs"},
            "notes");
  Plan plan;
  plan.shape.algorithm = file.at("algorithm").string();
  plan.shape.description = file.at("description").string();
  plan.shape.num_ranks = file.at("num_ranks").index(1);
  plan.shape.num_steps = file.at("num_steps").index(0);
  plan.shape.neighbours_only = file.at("neighbours_only").boolean();
  plan.shape.blocks = read_block_map(file.at("blocks"));
  const Value lanes = file.at("lanes");
  for (std::size_t i = 0; i < lanes.array("an array of lanes"); ++i)
    plan.shape.lanes.push_back(read_lane(lanes.at(i)));
  const Value programs = file.at("programs");
  const std::size_t num_programs = programs.array("an array of programs");
  if (num_programs != static_cast<std::size_t>(plan.shape.num_ranks)) {
    throw ReadError{Code::kUnsupported,
                    fmt::format("plan file: it has the programs of {} of {} ranks; hips plan --all "
                                "writes all of them",
                                num_programs, plan.shape.num_ranks)};
  }
  plan.programs.reserve(num_programs);
  for (std::size_t i = 0; i < num_programs; ++i) {
    plan.programs.push_back(read_program(programs.at(i), static_cast<Rank>(i)));
  }
  return plan;
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

PlanJsonWriter::PlanJsonWriter(std::ostream& out, const PlanShape& shape)
    : PlanJsonWriter(out, shape, Json()) {}

PlanJsonWriter::PlanJsonWriter(std::ostream& out, const PlanShape& shape, const Json& notes) : out_(out) {
  out_ << "{\n \"format\": \"hips-plan\",\n \"version\": " << kPlanJsonVersion;
  const auto field = [&](const char* key, const Json& value) {
    out_ << ",\n \"" << key << "\": " << text_of(value);
  };
  field("algorithm", shape.algorithm);
  field("description", shape.description);
  field("num_ranks", shape.num_ranks);
  field("num_steps", shape.num_steps);
  field("neighbours_only", shape.neighbours_only);
  Json parts = Json::array();
  for (const BlockMap::Part& part : shape.blocks.parts) {
    parts.push_back(
        Json{{"blocks", json_of(part.blocks)}, {"begin", json_of(part.begin)}, {"end", json_of(part.end)}});
  }
  field("blocks", Json{{"num_blocks", shape.blocks.num_blocks},
                       {"num_scratch_blocks", shape.blocks.num_scratch_blocks},
                       {"parts", std::move(parts)}});
  out_ << ",\n \"lanes\": [";
  for (std::size_t lane = 0; lane < shape.lanes.size(); ++lane) {
    out_ << (lane == 0 ? "\n  " : ",\n  ") << text_of(json_of(shape.lanes[lane]));
  }
  out_ << "]";
  if (!notes.is_null()) field("notes", notes);
  out_ << ",\n \"programs\": [";
}

void PlanJsonWriter::add(const Program& program) {
  Json owned = Json::array();
  for (const BlockRange& range : program.owned) owned.push_back(json_of(range));
  out_ << (first_ ? "\n" : ",\n") << "  {\"rank\":" << program.rank << ",\"owned\":" << text_of(owned)
       << ",\"steps\":[";
  first_ = false;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    out_ << (i == 0 ? "\n   " : ",\n   ") << text_of(json_of(program, program.steps[i]));
  }
  out_ << "]}";
}

void PlanJsonWriter::finish() {
  out_ << "]\n}\n";
}

std::string to_json(const Plan& plan) {
  std::ostringstream out;
  PlanJsonWriter writer(out, plan.shape);
  for (const Program& program : plan.programs) writer.add(program);
  writer.finish();
  return std::move(out).str();
}

Result<Plan> from_json(std::string_view text) {
  Json notes;
  return from_json(text, notes);
}

Result<Plan> from_json(std::string_view text, Json& notes) {
  try {
    Json json = Json::parse(text.begin(), text.end());
    Plan plan = read_plan(json);
    notes = json.contains("notes") ? std::move(json["notes"]) : Json();
    return plan;
  } catch (const ReadError& error) {
    return fail(error.code, error.message);
  } catch (const Json::parse_error& error) {
    return fail(Code::kInvalidArgument,
                fmt::format("plan file: invalid JSON near byte {} of {}", error.byte, text.size()));
  } catch (const Json::exception& error) {
    return fail(Code::kInvalidArgument, fmt::format("plan file: {}", error.what()));
  }
}

}  // namespace hips::plan
