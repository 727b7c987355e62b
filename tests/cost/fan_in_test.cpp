#include "lib/cost/fan_in.hpp"

#include <gtest/gtest.h>

#include "lib/plan/builder.hpp"

namespace hips::cost {
namespace {

std::int64_t fan_in_of(const char* spec, PlanRequest request, Rank rank = 0) {
  return fan_in(value_or_throw(plan::make_builder(parse_topology(spec), request))->program(rank));
}

TEST(FanIn, IsOneInARingAndAllOthersInAMesh) {
  EXPECT_EQ(fan_in_of("switch:7", {.algorithm = "flat-ring"}), 1);
  EXPECT_EQ(fan_in_of("switch:7", {.algorithm = "flat-mesh"}), 6);
  EXPECT_EQ(fan_in_of("bcube:4x5", {}), 4);
  EXPECT_EQ(fan_in_of("torus:4x5", {}), 1);
}

TEST(FanIn, CountsTheSendersToOneNicInOneRound) {
  // Six of the eight others reach a server of BCube(3,1) by the NIC of the higher level.
  EXPECT_EQ(fan_in_of("bcube:3,1", {.algorithm = "flat-mesh"}), 6);
  // A leader receives from all others, which receive from the leader only.
  EXPECT_EQ(fan_in_of("switch:7", {.algorithm = "flat-ps"}), 6);
  EXPECT_EQ(fan_in_of("switch:7", {.algorithm = "flat-ps"}, 3), 1);
}

TEST(FanIn, IsZeroWithoutMessagesThroughNics) {
  EXPECT_EQ(fan_in_of("switch:1", {}), 0);
  EXPECT_EQ(fan_in_of("switch:1/4", {}), 0);
}

}  // namespace
}  // namespace hips::cost
