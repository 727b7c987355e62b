#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "lib/plan/formats/plan_text.hpp"
#include "tests/plan/support.hpp"

namespace hips::tests {
namespace {

struct Golden {
  const char* file;
  const char* spec;
  PlanRequest request;
  std::vector<Rank> ranks;
};

std::string text_of(const Golden& golden) {
  const Topology topology = parse_topology(golden.spec);
  const auto builder = value_or_throw(plan::make_builder(topology, golden.request));
  const plan::TextVolume volume{.count = 250'000, .element_bytes = 4};
  std::string text = plan::shape_text(builder->shape(), topology, volume);
  for (const Rank rank : golden.ranks) {
    text += "\n" + plan::program_text(builder->shape(), builder->program(rank), topology, volume);
  }
  return text;
}

TEST(GoldenPlans, EqualTheReviewedText) {
  const std::vector<Golden> all = {
      {"bcube_3_1", "bcube:3,1", {}, {0, 5}},
      {"bcube_2x4", "bcube:2x4", {}, {3}},
      {"bcube_3_1_ps1", "bcube:3,1", {.patterns = patterns("ps:1")}, {0, 1, 4}},
      {"bcube_3_1_local", "bcube:3,1/2", {}, {1}},
      {"torus_3x2", "torus:3x2", {}, {1}},
      {"mesh_3x2", "mesh:3x2", {}, {1}},
      {"fattree_4", "fattree:4", {}, {5}},
      {"rail_4_2", "rail:4,2", {}, {2}},
      {"flat_ps", "switch:4", {.algorithm = "flat-ps"}, {0, 3}},
      {"flat_mesh", "rail:3,2", {.algorithm = "flat-mesh"}, {1}},
      {"flat_ring_bcube_3_1", "bcube:3,1", {.algorithm = "flat-ring"}, {0}},
      {"flat_ring_rail_4_2", "rail:4,2", {.algorithm = "flat-ring"}, {1}},
      {"recursive_doubling_3", "switch:3", {.algorithm = "recursive-doubling"}, {0, 1, 2}},
      {"recursive_multiplying_11", "switch:11", {.algorithm = "recursive-multiplying"}, {0, 1, 10}},
      {"halving_doubling_6", "switch:6", {.algorithm = "halving-doubling"}, {0, 1, 5}},
      {"binomial_tree_7", "rail:7,2", {.algorithm = "binomial-tree"}, {0, 4, 6}},
      {"double_tree_7", "switch:7", {.algorithm = "double-tree"}, {0, 4}},
      {"bucket_3x2", "torus:3x2", {.algorithm = "bucket"}, {1}},
      {"swing_8", "torus:8", {.algorithm = "swing"}, {0, 3}},
      {"bine_6", "switch:6", {.algorithm = "bine"}, {0, 1, 5}},
      {"trees_bcube_part", "bcube:3,1[0-4,8]", {}, {0, 2}},
      {"trees_leafspine_part", "leafspine:3,4,2[0-4,8]/2", {}, {3}},
      {"alone", "switch:1", {}, {0}},
  };
  for (const Golden& golden : all) {
    const std::string path = std::string(HIPS_GOLDEN_DIR) + "/" + golden.file + ".txt";
    const std::string text = text_of(golden);
    if (std::getenv("HIPS_GOLDEN_UPDATE") != nullptr) {
      std::ofstream(path) << text;
      continue;
    }
    std::ifstream file(path);
    ASSERT_TRUE(file) << path << " is missing; HIPS_GOLDEN_UPDATE=1 writes it";
    std::ostringstream expected;
    expected << file.rdbuf();
    EXPECT_EQ(text, expected.str()) << "HIPS_GOLDEN_UPDATE=1 rewrites " << path;
  }
}

TEST(PlanText, PrintsBytesInShortForm) {
  EXPECT_EQ(plan::bytes_text(0), "0 B");
  EXPECT_EQ(plan::bytes_text(1023), "1023 B");
  EXPECT_EQ(plan::bytes_text(1024), "1 KiB");
  EXPECT_EQ(plan::bytes_text(1'048'530), "1.0 MiB");
  EXPECT_EQ(plan::bytes_text(67'108'864), "64 MiB");
  EXPECT_EQ(plan::bytes_text(70'000'000), "66.8 MiB");
  EXPECT_EQ(plan::bytes_text(INT64_MAX), "8 EiB");
}

}  // namespace
}  // namespace hips::tests
