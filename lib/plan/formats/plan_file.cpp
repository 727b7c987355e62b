#include "lib/plan/formats/plan_file.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "lib/plan/check/check.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "lib/plan/steps/peer_link.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/walk.hpp"

namespace hips::plan {
namespace {

/// FNV-1a. Distinguishes different files; it need not resist attacks.
std::string fingerprint(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

std::vector<PlanFormat>& other_formats() {
  static std::vector<PlanFormat> formats;
  return formats;
}

/// The format of a text; null for JSON and for unknown formats.
const PlanFormat* other_format(std::string_view text) {
  const auto found = std::ranges::find_if(other_formats(),
                                          [&](const PlanFormat& format) { return format.recognises(text); });
  return found == other_formats().end() ? nullptr : &*found;
}

/// Reads a text that is not in one of the other formats.
Result<Plan> read_json(std::string_view text, nlohmann::ordered_json& notes) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '<') {
    return fail(Code::kInvalidArgument,
                "the plan is XML, and the preloaded library reads plans as JSON only; start the program with "
                "hips run, which converts it");
  }
  return from_json(text, notes);
}

}  // namespace

void add_plan_format(const PlanFormat& format) {
  other_formats().push_back(format);
}

std::string_view plan_format(std::string_view text) {
  const PlanFormat* const other = other_format(text);
  return other == nullptr ? kJsonFormat : other->name;
}

Result<StoredPlan> read_plan_file(const std::string& path) {
  const auto text = topology::read_text_file(path, kMostPlanBytes);
  if (!text) return fail(Code::kInvalidArgument, "plan file " + text.error().message);
  nlohmann::ordered_json notes;
  const PlanFormat* const other = other_format(*text);
  auto plan = other == nullptr ? read_json(*text, notes) : other->read(*text);
  if (!plan) return fail(Code::kInvalidArgument, fmt::format("{}: {}", path, plan.error().message));
  StoredPlan stored;
  stored.plan = std::move(*plan);
  stored.digest = fingerprint(*text);
  const auto note = [&](const char* key) {
    return notes.is_object() && notes.contains(key) && notes[key].is_string() ? notes[key].get<std::string>()
                                                                              : "";
  };
  stored.topology = note("topology");
  const std::string original = note(kConvertedFrom);
  stored.name = original.empty() ? path : original;
  return stored;
}

Status prove_stored(const std::string& path, const Plan& plan, const Topology& topology) {
  if (plan.shape.num_ranks != topology.num_ranks()) {
    return Status::error(Code::kUnsupported,
                         fmt::format("{} is a plan for {} ranks, but {} has {}", path, plan.shape.num_ranks,
                                     topology.spec, topology.num_ranks()));
  }
  CheckOptions options;
  options.topology = &topology;
  const CheckReport report = check(plan, options);
  if (report.ok()) return Status::success();
  const Finding& first = report.findings.front();
  std::string text = fmt::format("{}: {}: {}", path, to_string(first.kind), first.text);
  if (!first.example.empty()) text += fmt::format(" ({})", fmt::join(first.example, "; "));
  return Status::error(Code::kInvalidArgument, fmt::format("{}; hips check --plan {} -t {} shows all of it",
                                                           text, path, topology.spec));
}

void set_rails(const Topology& topology, Plan& plan) {
  if (topology.num_ranks() != plan.shape.num_ranks) return;
  const std::int64_t local = topology.ranks_per_server;
  bool one_hop = true;
  const auto rail_of = [&](Rank from, Rank to, std::int32_t lane, bool out) {
    if (from / local == to / local) return kNoRail;
    return out ? routed_link(topology, from, to, lane).out : routed_link(topology, to, from, lane).in;
  };
  const auto count_hops = [&](Rank from, Rank to) {
    std::int64_t hops = 0;
    topology::walk(topology, from, to, kNoRail, [&](const Hop&) { ++hops; });
    one_hop = one_hop && hops <= 1;
  };
  for (Program& program : plan.programs) {
    for (Step& step : program.steps) {
      if (step.op == StepOp::kSend) {
        if (step.peer < 0 || step.peer >= plan.shape.num_ranks) return;
        count_hops(program.rank, step.peer);
        if (step.rail == kNoRail) step.rail = rail_of(program.rank, step.peer, step.lane, true);
      }
      for (std::int32_t i = 0; i < step.num_sources; ++i) {
        Source& source = program.sources[step.first_source + i];
        if (source.kind == Source::Kind::kMessage && source.rail == kNoRail)
          source.rail = rail_of(source.peer, program.rank, step.lane, false);
      }
    }
  }
  plan.shape.neighbours_only = one_hop;
}

}  // namespace hips::plan
