#include "tools/hips/run/job_settings.hpp"

#include <string_view>

#include <fmt/format.h>

#include "lib/cost/select_table.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/formats/plan_file.hpp"

namespace hips::cli {
namespace {

/// A value, and the option or variable that it comes from.
struct Named {
  std::string value;
  std::string_view origin;
};

std::optional<Named> named_by(const std::optional<std::string>& option, std::string_view option_name,
                              const std::optional<std::string>& variable, std::string_view variable_name) {
  if (option) return Named{*option, option_name};
  if (variable) return Named{*variable, variable_name};
  return std::nullopt;
}

Status with_origin(std::string_view origin, Status status) {
  status.message = fmt::format("{}: {}", origin, status.message);
  return status;
}

Status check_named_plan(const std::optional<Named>& algorithm, const std::optional<Named>& pattern,
                        const std::optional<Topology>& topology) {
  PlanRequest request;
  if (algorithm) request.algorithm = algorithm->value;
  if (pattern) {
    auto patterns = plan::parse_patterns(pattern->value);
    if (!patterns) return with_origin(pattern->origin, patterns.error());
    if (topology) request.patterns = *std::move(patterns);
  }
  if (!algorithm && !pattern) return Status::success();
  const auto builder = plan::make_builder(topology ? *topology : parse_topology("switch:2"), request);
  // On the topology that stands for an unknown one, only an unknown algorithm is an error.
  if (builder || (!topology && builder.error().code != Code::kInvalidArgument)) return Status::success();
  return with_origin((algorithm ? algorithm : pattern)->origin, builder.error());
}

Status check_stored_plan(const std::string& path, const std::optional<Topology>& topology) {
  constexpr std::string_view kOrigin = "HIPS_PLAN_FILE";
  auto stored = plan::read_plan_file(path);
  if (!stored) return with_origin(kOrigin, stored.error());
  // Communicators of another size than the plan's are delegated to native MPI, with one warning.
  if (!topology || stored->plan.shape.num_ranks != topology->num_ranks()) return Status::success();
  plan::set_rails(*topology, stored->plan);
  Status proved = plan::prove_stored(path, stored->plan, *topology);
  return proved.ok() ? proved : with_origin(kOrigin, std::move(proved));
}

}  // namespace

Status check_job_settings(const NamedByCommandLine& named, const Config& config,
                          const std::optional<Topology>& topology) {
  const auto algorithm = named_by(named.algorithm, "--algorithm", config.algorithm, "HIPS_ALGORITHM");
  const auto pattern = named_by(named.pattern, "--pattern", config.pattern, "HIPS_PATTERN");
  if (config.plan_file) {
    for (const std::optional<Named>& other : {algorithm, pattern}) {
      if (!other) continue;
      return Status::error(
          Code::kInvalidArgument,
          fmt::format("{} and HIPS_PLAN_FILE both name the plan; remove one", other->origin));
    }
    if (Status status = check_stored_plan(*config.plan_file, topology); !status.ok()) return status;
  }
  if (Status status = check_named_plan(algorithm, pattern, topology); !status.ok()) return status;
  if (config.select_table) {
    const auto table = cost::SelectTable::read(*config.select_table);
    if (!table) return with_origin("HIPS_SELECT_TABLE", table.error());
  }
  return Status::success();
}

}  // namespace hips::cli
