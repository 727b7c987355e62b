#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lib/mpi/preload.hpp"
#include "lib/mpi/report.hpp"
#include "lib/mpi/topology_choice.hpp"

namespace hips::mpi {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Preload, OnlyTheInterposerLeavesThePreload) {
  EXPECT_EQ(without_interposer("/l/libhips_mpi.so"), "");
  EXPECT_EQ(without_interposer("a.so:/l/libhips_mpi.so:b.so"), "a.so:b.so");
  EXPECT_EQ(without_interposer("a.so /l/libhips_mpi.so b.so"), "a.so:b.so");
  EXPECT_EQ(without_interposer("/libhips_mpi.so/a.so"), "/libhips_mpi.so/a.so");
  EXPECT_EQ(without_interposer(""), "");
}

TEST(TopologyChoice, ACommunicatorThatMatchesGetsTheUsersTopology) {
  const auto world = choose_topology("bcube:3,1", 9, 9);
  ASSERT_TRUE(world);
  EXPECT_EQ(world->spec, "bcube:3,1");
  EXPECT_TRUE(world->is_users);
  EXPECT_EQ(choose_topology("bcube:3,1", 18, 18)->spec, "bcube:3,1/2");
  EXPECT_EQ(choose_topology({}, 5, 9)->spec, std::nullopt);
}

TEST(TopologyChoice, ASubCommunicatorOfAnotherSizeGetsAPlanOfItsOwn) {
  const auto half = choose_topology("bcube:3,1", 4, 9);
  ASSERT_TRUE(half);
  EXPECT_EQ(half->spec, "switch:4");
  EXPECT_FALSE(half->is_users);
  // Twice the servers, but not the whole job: which servers they are on is not known.
  EXPECT_EQ(choose_topology("bcube:2,1", 8, 16)->spec, "switch:8");
}

TEST(TopologyChoice, AWorldThatDoesNotMatchIsAnErrorThatNamesBothSizes) {
  const auto world = choose_topology("bcube:3,1", 8, 8);
  ASSERT_FALSE(world);
  EXPECT_EQ(world.error().code, Code::kInvalidArgument);
  EXPECT_THAT(world.error().message, HasSubstr("bcube:3,1 has 9 ranks"));
  EXPECT_THAT(world.error().message, HasSubstr("MPI_COMM_WORLD has 8"));
  EXPECT_FALSE(choose_topology("bcube:2,1/2", 16, 16));
  EXPECT_FALSE(choose_topology("bcube:3", 4, 9));
}

TEST(Report, CallsOfCommunicatorsThatLookAlikeAreSummed) {
  Report report;
  for (int i = 0; i < 1000; ++i)
    report.add_taken("unnamed communicator", 4, "HiPS on a switch", {2, 80, 1000});
  report.add_taken("MPI_COMM_WORLD", 8, "HiPS on BCube(2,2)", {1, 4, 500});
  report.add_taken("never used", 8, "HiPS on BCube(2,2)", {});
  report.add_declined("type MPI_CHAR");
  report.add_declined("type MPI_CHAR");
  report.add_declined("count 0");
  const std::string text = report.text("Open MPI v4.1.4", 0, 8);
  EXPECT_THAT(text, HasSubstr("taken 2001 calls, 80004 bytes"));
  EXPECT_THAT(text, HasSubstr("unnamed communicator, 4 ranks: 2000 calls, 80000 bytes"));
  EXPECT_THAT(text, HasSubstr("MPI_COMM_WORLD, 8 ranks: 1 call, 4 bytes"));
  EXPECT_THAT(text, Not(HasSubstr("never used")));
  EXPECT_THAT(text, HasSubstr("left to the host 3 calls"));
  EXPECT_THAT(text, HasSubstr("2 calls: type MPI_CHAR"));
  EXPECT_THAT(text, HasSubstr("1 call: count 0"));
}

TEST(Report, AThousandReasonsMakeAShortReport) {
  Report report;
  for (int i = 0; i < 1000; ++i) {
    report.add_declined("reason " + std::to_string(i));
    report.add_taken("comm " + std::to_string(i), 2, "plan", {1, 4, 1});
  }
  const std::string text = report.text("Open MPI", 0, 2);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 100);
  EXPECT_THAT(text, HasSubstr("and 968 other communicators"));
  EXPECT_THAT(text, HasSubstr("and 968 other reasons"));
}

}  // namespace
}  // namespace hips::mpi
