#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <hips/plan.hpp>

#include "lib/plan/builder.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::exec::testing {

/// A topology and the plan to build on it.
struct Case {
  std::string spec;
  PlanRequest request;
  [[nodiscard]] std::string text() const {
    std::string result = spec + " " + request.algorithm;
    for (const LevelPattern& pattern : request.patterns) {
      result += " " + std::to_string(static_cast<int>(pattern.scatter)) +
                std::to_string(static_cast<int>(pattern.gather)) + ":" + std::to_string(pattern.num_leaders);
    }
    return result;
  }
};

inline std::vector<Case> cases() {
  const LevelPattern mesh{Pattern::kMesh, Pattern::kMesh, 0};
  const LevelPattern ring{Pattern::kRing, Pattern::kRing, 0};
  const LevelPattern mixed{Pattern::kMesh, Pattern::kRing, 0};
  const LevelPattern ps1{Pattern::kPs, Pattern::kPs, 1};
  std::vector<Case> all;
  for (const char* spec : {"switch:1", "switch:2", "switch:5", "bcube:3,1", "bcube:2,2", "bcube:2x4",
                           "bcube:2x3x2", "torus:3x3", "torus:4x2", "fattree:4", "rail:3,2", "bcube:2,1/2"}) {
    all.push_back({spec, {}});
    all.push_back({spec, {.patterns = {mesh}}});
    all.push_back({spec, {.patterns = {ring}}});
    all.push_back({spec, {.patterns = {mixed}}});
    all.push_back({spec, {.patterns = {ps1}}});
  }
  for (const char* spec : {"bcube:3,1[0-4,8]", "torus:4x4[0-2,5,6]", "leafspine:3,4,2[0-4,8]/2"})
    all.push_back({spec, {}});
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    if (algorithm.name == "hips") continue;
    for (const char* spec : {"switch:1", "switch:2", "switch:3", "switch:6", "switch:9", "rail:4,2",
                             "bcube:3,1", "torus:4x2", "torus:8"}) {
      // Each algorithm on topologies that it supports: those for a torus only there, and the others
      // elsewhere.
      const bool of_torus = algorithm.name == "bucket" || algorithm.name == "swing";
      if (of_torus == std::string_view(spec).starts_with("torus"))
        all.push_back({spec, {.algorithm = std::string(algorithm.name)}});
    }
  }
  return all;
}

/// For INSTANTIATE_TEST_SUITE_P.
inline std::string name_of(const ::testing::TestParamInfo<Case>& instance) {
  std::string name;
  for (const char c : instance.param.text())
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

}  // namespace hips::exec::testing
