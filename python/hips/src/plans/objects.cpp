#include "python/hips/src/plans/objects.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/base/result.hpp"
#include "lib/cost/select.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/finished_builder.hpp"
#include "lib/plan/formats/plan_file.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "lib/plan/formats/plan_text.hpp"
#include "tools/hips/compare/size_range.hpp"
#include "tools/hips/picture/page.hpp"

namespace hips::python {
namespace {

constexpr std::int64_t kElementBytes = 4;
/// With more steps than this in all, the cost is counted for one server only.
constexpr std::int64_t kMostCountedSteps = 4'000'000;

[[noreturn]] void refuse(std::string text) {
  throw Error(Status::error(Code::kInvalidArgument, std::move(text)));
}

std::int64_t count_of(std::uint64_t bytes) {
  if (bytes > cost::kMostVectorBytes) refuse(fmt::format("bytes: {} is above the maximum of {}", bytes, cost::kMostVectorBytes));
  if (bytes % kElementBytes != 0) refuse(fmt::format("bytes: {} is not a multiple of {}, the size of a float32", bytes, kElementBytes));
  return static_cast<std::int64_t>(bytes) / kElementBytes;
}

std::vector<LevelPattern> patterns_of(const std::string& text) {
  return text.empty() ? std::vector<LevelPattern>{} : value_or_throw(plan::parse_patterns(text));
}

}  // namespace

TopologyPointer load_topology(const std::string& spec) {
  return std::make_shared<const topology::TopologyFile>(value_or_throw(topology::load_topology(spec)));
}

PlanObject PlanObject::make(const TopologyPointer& topology, const PlanName& name, std::uint64_t bytes) {
  (void)count_of(bytes);
  const bool is_named = !name.algorithm.empty() || !name.pattern.empty() || name.num_leaders != 0 || name.num_rings != 0;
  if (!is_named) {
    auto candidates = value_or_throw(cost::candidates(topology->topology));
    cost::Candidate& chosen = candidates[cost::choose(topology->topology, cost::Medium::kWires, candidates, bytes)];
    return {topology, std::move(chosen.builder), std::move(chosen.name)};
  }
  const PlanRequest request{.algorithm = name.algorithm.empty() ? "hips" : name.algorithm,
                            .patterns = patterns_of(name.pattern),
                            .num_leaders = name.num_leaders,
                            .num_rings = name.num_rings};
  if (Status status = plan::check_groups(topology->topology, request.algorithm); !status.ok()) throw Error(std::move(status));
  return {topology, value_or_throw(plan::make_builder(topology->topology, request)), ""};
}

PlanObject PlanObject::read(const std::string& path, TopologyPointer topology) {
  plan::StoredPlan stored = value_or_throw(plan::read_plan_file(path));
  if (topology == nullptr && !stored.topology.empty()) topology = load_topology(stored.topology);
  if (topology == nullptr) topology = load_topology(fmt::format("switch:{}", stored.plan.shape.num_ranks));
  if (topology->topology.num_ranks() != stored.plan.shape.num_ranks)
    refuse(fmt::format("{} is a plan for {} ranks, but {} has {}", path, stored.plan.shape.num_ranks, topology->topology.spec,
                       topology->topology.num_ranks()));
  plan::set_rails(topology->topology, stored.plan);
  return {std::move(topology), std::make_unique<plan::FinishedBuilder>(std::move(stored.plan)), ""};
}

Program PlanObject::program(Rank rank) const {
  if (rank < 0 || rank >= shape().num_ranks) refuse(fmt::format("rank: {} is out of range [0, {}]", rank, shape().num_ranks - 1));
  return builder_->program(rank);
}

std::string PlanObject::text(std::optional<Rank> rank, std::uint64_t bytes) const {
  const plan::TextVolume volume{count_of(bytes), kElementBytes};
  if (!rank) return plan::shape_text(shape(), topology_->topology, volume);
  return plan::program_text(shape(), program(*rank), topology_->topology, volume);
}

cost::Cost PlanObject::cost(std::uint64_t bytes) const {
  const cost::Volume volume{.count = count_of(bytes), .element_bytes = kElementBytes};
  const auto steps_of_one = static_cast<std::int64_t>(builder_->program(0).steps.size());
  return steps_of_one * topology_->topology.num_ranks() <= kMostCountedSteps
             ? cost::estimate_all(topology_->topology, *builder_, volume)
             : cost::estimate_server_of(topology_->topology, *builder_, 0, volume);
}

plan::CheckReport PlanObject::check(plan::CheckOptions options) const {
  options.topology = &topology_->topology;
  if (const std::string why = plan::too_large_to_build(*builder_, options); !why.empty())
    throw Error(Status::error(Code::kUnsupported, fmt::format("check: {}: too large: {}", shape().description, why)));
  return plan::check(plan::build_all(*builder_), options);
}

std::string PlanObject::json() const {
  std::ostringstream out;
  plan::PlanJsonWriter writer(out, shape(), {{"topology", topology_->topology.spec}});
  for (Rank rank = 0; rank < shape().num_ranks; ++rank) writer.add(builder_->program(rank));
  writer.finish();
  return out.str();
}

std::string PlanObject::html(std::uint64_t bytes) const {
  return value_or_throw(picture::plan_page(*topology_, *builder_, {{"topology", topology_->topology.spec}, {"bytes", bytes}}, cost(bytes)));
}

compare::Comparison compare_plans(const topology::TopologyFile& file, const std::string& bytes, const std::string& algorithms, bool baseline) {
  const Topology& topology = file.topology;
  auto entries = value_or_throw(compare::parse_entries(algorithms, topology));
  if (baseline) std::ranges::move(compare::baseline_entries(topology), std::back_inserter(entries));
  constexpr std::int64_t kFactor = 4;
  return compare::compare(topology, entries, value_or_throw(compare::parse_size_range(bytes, kFactor)));
}

}  // namespace hips::python
