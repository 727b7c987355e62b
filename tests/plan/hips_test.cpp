#include <gtest/gtest.h>

#include "tests/plan/radix_mixes.hpp"
#include "tests/plan/support.hpp"

namespace hips::tests {
namespace {

TEST(Hips, SumsEveryContributionOnceOnEveryMixOfRadices) {
  for (const std::string& radices : radix_mixes(24)) {
    expect_correct(bcube_spec(radices));
    expect_correct("torus:" + radices);
  }
}

TEST(Hips, IsCorrectOnEveryOtherFamily) {
  for (const char* spec :
       {"switch:1", "switch:2", "switch:7", "rail:9,2", "rail:1,4", "fattree:2", "fattree:4", "fattree:6",
        "bcube:3,1/2", "torus:3x2/3", "rail:4,2/2", "fattree:4/2", "switch:1/4", "bcube:3x3@25Gb"}) {
    expect_correct(spec);
  }
}

TEST(Hips, SupportsAnyMixOfPatterns) {
  for (const char* spec : {"bcube:3,1", "bcube:2x4", "bcube:4x3x2", "torus:4x3", "torus:5x2", "fattree:4",
                           "rail:6,3", "bcube:3x2/2"}) {
    for (const char* pattern : {"mesh", "ring", "mesh/ring", "ring/mesh", "ps:1", "ps:2"}) {
      expect_correct(spec, {.patterns = patterns(pattern)});
    }
  }
  expect_correct("bcube:4x3x2", {.patterns = patterns("ps:3,ring/mesh,mesh")});
  expect_correct("bcube:5x3x2", {.patterns = patterns("ring,ps:2,ps:1")});
  expect_correct("torus:6x4", {.patterns = patterns("mesh,ps:3")});
}

}  // namespace
}  // namespace hips::tests
