#include "lib/plan/plan_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "lib/plan/check.hpp"
#include "lib/plan/msccl_read.hpp"
#include "lib/plan/plan_json.hpp"
#include "topology/topology_file.hpp"

namespace hips::plan {
namespace {

/// FNV-1a: tells files apart that are not the same; nobody's secret depends on it.
std::string fingerprint(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

}  // namespace

Result<StoredPlan> read_plan_file(const std::string& path) {
  const auto text = topology::read_text_file(path, kMostPlanBytes);
  if (!text) return fail(Code::kInvalidArgument, "plan file " + text.error().message);
  nlohmann::ordered_json notes;
  auto plan = is_msccl(*text) ? read_msccl(*text) : from_json(*text, notes);
  if (!plan) return fail(Code::kInvalidArgument, fmt::format("{}: {}", path, plan.error().message));
  StoredPlan stored;
  stored.plan = std::move(*plan);
  stored.digest = fingerprint(*text);
  if (notes.is_object() && notes.contains("topology") && notes["topology"].is_string())
    stored.topology = notes["topology"].get<std::string>();
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

}  // namespace hips::plan
