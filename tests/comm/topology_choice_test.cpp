#include "lib/comm/setup/topology_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

namespace hips::comm {
namespace {

using testing::HasSubstr;

std::vector<Rank> first_ranks(int num) {
  std::vector<Rank> ranks(static_cast<std::size_t>(num));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TEST(TopologyChoice, ACommunicatorOfTheSameSizeGetsTheUsersTopology) {
  const auto whole = choose_topology("bcube:3,1", first_ranks(9), 9, "the job");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->spec, "bcube:3,1");
  EXPECT_TRUE(whole->is_users);
  EXPECT_EQ(choose_topology("bcube:3,1", first_ranks(18), 18, "the job")->spec, "bcube:3,1/2");
  EXPECT_EQ(choose_topology({}, first_ranks(5), 9, "the job")->spec, std::nullopt);
}

TEST(TopologyChoice, ASubCommunicatorGetsThePartThatItsRanksOccupy) {
  const auto column = choose_topology("bcube:3,1", std::vector<Rank>{1, 4, 7}, 9, "the job");
  ASSERT_TRUE(column);
  EXPECT_EQ(column->spec, "bcube:3,0");
  EXPECT_FALSE(column->is_users);
  EXPECT_EQ(choose_topology("bcube:2,1", first_ranks(8), 16, "the job")->spec, "bcube:2,0/4");
  EXPECT_EQ(choose_topology("bcube:3,1", first_ranks(4), 9, "the job")->spec, "bcube:3,1[0-3]");
}

TEST(TopologyChoice, HipsChoosesWhereTheOccupiedPartIsNotATopology) {
  const auto apart = choose_topology("bcube:3,1", std::vector<Rank>{0, 4}, 9, "the job");
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->spec, std::nullopt);
  EXPECT_FALSE(apart->is_users);
  EXPECT_EQ(choose_topology("bcube:3,1", std::vector<Rank>{7, 4, 1}, 9, "the job")->spec, std::nullopt);
  EXPECT_EQ(choose_topology("bcube:3,1", std::vector<Rank>{1, 4, -1}, 9, "the job")->spec, std::nullopt);
  EXPECT_EQ(choose_topology("bcube:3,1", std::vector<Rank>{0, 2, 1, 3, 4, 5, 6, 7, 8}, 9, "the job")->spec,
            std::nullopt)
      << "servers are in the order of their ranks";
}

TEST(TopologyChoice, ACommunicatorMayHaveAsManyRanksAsServersOnOtherServers) {
  // The ranks of the first four and a half of nine servers.
  EXPECT_NE(choose_topology("bcube:3,1", first_ranks(9), 18, "the job")->spec, "bcube:3,1");
  // One rank of each server.
  EXPECT_EQ(
      choose_topology("bcube:3,1", std::vector<Rank>{0, 2, 4, 6, 8, 10, 12, 14, 16}, 18, "the job")->spec,
      "bcube:3,1");
  // A job with one rank more than there are servers, which takes no part in the network.
  const auto workers = choose_topology("bcube:3,1", first_ranks(9), 10, "the job");
  EXPECT_EQ(workers->spec, "bcube:3,1");
  EXPECT_TRUE(workers->is_users);
}

TEST(TopologyChoice, AnErrorNamesBothSizesWhereTheJobHasAnother) {
  const auto whole = choose_topology("bcube:3,1", first_ranks(8), 8, "the job");
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, Code::kInvalidArgument);
  EXPECT_THAT(whole.error().message, HasSubstr("bcube:3,1 has 9 ranks"));
  EXPECT_THAT(whole.error().message, HasSubstr("the job has 8"));
  EXPECT_FALSE(choose_topology("bcube:2,1/2", first_ranks(16), 16, "the job"));
  EXPECT_FALSE(choose_topology("bcube:3", first_ranks(4), 9, "the job"));
}

}  // namespace
}  // namespace hips::comm
