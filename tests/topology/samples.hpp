#pragma once

#include <string>
#include <vector>

namespace hips::tests {

/// Every family, equal and mixed radices, sides of 2, ranks per server, rates, and a server alone.
inline const std::vector<std::string>& sample_specs() {
  static const std::vector<std::string> kSpecs = {
      "bcube:3,1",         "bcube:2,3",       "bcube:4,2",
      "bcube:8,0",         "bcube:2x4x3",     "bcube:12x2",
      "bcube:5x2/3",       "torus:4x4",       "torus:4x4x4",
      "torus:2x2",         "torus:5",         "torus:3x2x5",
      "torus:4x3/2",       "mesh:4x4",        "mesh:3x5",
      "mesh:2x3x2/2",      "mesh:7@25Gb",     "fattree:2",
      "fattree:4",         "fattree:6",       "fattree:8",
      "fattree:4/2",       "leafspine:4,8",   "leafspine:2,2",
      "leafspine:3,1",     "leafspine:6,4,1", "leafspine:3,4,2@25Gb/2",
      "rail:9,2",          "rail:1,4",        "rail:4,8/2",
      "switch:1",          "switch:2",        "switch:12",
      "switch:1/4",        "switch:3/2",      "bcube:3,1@25Gb",
      "torus:4x2@2.5Gb/2", "rail:4,2@0.1Gb",  "torus:2x2x2x2x2",
  };
  return kSpecs;
}

}  // namespace hips::tests
