#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/plan/builder.hpp"
#include "lib/plan/plan_builder.hpp"
#include "tests/plan/check_links.hpp"
#include "tests/plan/run_plan.hpp"

namespace hips::tests {

inline std::uint64_t seed_of_run() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("HIPS_SEED");
    const std::uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::printf("HIPS_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

inline Plan plan_of(const std::string& spec, const PlanRequest& request = {}) {
  return plan::build_all(*value_or_throw(plan::make_builder(parse_topology(spec), request)));
}

inline std::vector<LevelPattern> patterns(const char* text) {
  return value_or_throw(plan::parse_patterns(text));
}

/// Runs the plan out of place and in place, and checks its links.
inline void expect_correct(const std::string& spec, const PlanRequest& request = {}) {
  const Plan plan = plan_of(spec, request);
  EXPECT_EQ(check_links(parse_topology(spec), plan), "") << spec << ", " << plan.shape.description;
  for (const bool in_place : {false, true}) {
    EXPECT_EQ(run_plan(plan, seed_of_run(), in_place), "")
        << spec << ", " << plan.shape.description << (in_place ? ", in place" : "");
  }
}

}  // namespace hips::tests
