#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/plan/builder.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::tests {

/// A plan to prove: a topology, an algorithm, and patterns for `hips` ("" for the default).
struct PlanCase {
  std::string spec;
  std::string algorithm = "hips";
  std::string patterns = {};
  std::int32_t num_leaders = 0;
  std::int32_t num_rings = 0;

  [[nodiscard]] std::string name() const {
    std::string text = algorithm + " on " + spec;
    if (!patterns.empty()) text += " with " + patterns;
    if (num_leaders > 0) text += " with " + std::to_string(num_leaders) + " leaders";
    if (num_rings > 0) text += " with " + std::to_string(num_rings) + " rings";
    return text;
  }
};

/// Builds the plan of a case; none if the algorithm does not support it. Throws any other error.
inline std::optional<Plan> build(const PlanCase& plan_case, const Topology& topology) {
  PlanRequest request;
  request.algorithm = plan_case.algorithm;
  request.num_leaders = plan_case.num_leaders;
  request.num_rings = plan_case.num_rings;
  if (!plan_case.patterns.empty())
    request.patterns = value_or_throw(plan::parse_patterns(plan_case.patterns));
  auto builder = plan::make_builder(topology, request);
  if (!builder && builder.error().code == Code::kUnsupported) return std::nullopt;
  return plan::build_all(*value_or_throw(std::move(builder)));
}

/// HIPS_SEED of the environment, or a random seed; printed, so that a failure can be reproduced.
inline std::uint64_t seed_from_environment() {
  const char* given = std::getenv("HIPS_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("HIPS_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return seed;
}

}  // namespace hips::tests
