// HIPS_REPRODUCIBLE: which calls give the same bits. Ranks are processes; each computes the expected results itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <hips/hips.hpp>

#include "lib/comm/setup/rank_order.hpp"
#include "tests/choices.hpp"
#include "tests/comm/allreduce_check.hpp"
#include "tests/comm/rank_processes.hpp"
#include "tests/comm/whole_ranks.hpp"

namespace reproducible_test {
namespace {

using hips::ReduceOp;
using hips::test::Digest;
using hips::test::Environment;
using hips::test::Outcome;
using hips::test::RankProcesses;
using hips::test::Ready;
using hips::test::same_text;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

/// Values of very different magnitude, so that the last bits of a sum depend on its order.
template <typename T>
std::vector<T> operands(std::uint64_t seed, int rank, std::size_t count) {
  std::mt19937_64 random(seed * 31 + static_cast<std::uint64_t>(rank));
  std::vector<T> values(count);
  for (T& value : values) {
    const auto mantissa = static_cast<double>(random() % 2'000'001) / 1e6 - 1.0;
    value = static_cast<T>(std::ldexp(mantissa, static_cast<int>(random() % 24)));
  }
  return values;
}

template <typename T>
std::vector<T> reduced_by_rank(std::uint64_t seed, int num_ranks, std::size_t count, ReduceOp op) {
  std::vector<T> result = operands<T>(seed, 0, count);
  for (int r = 1; r < num_ranks; ++r) {
    const std::vector<T> next = operands<T>(seed, r, count);
    for (std::size_t i = 0; i < count; ++i)
      result[i] = op == ReduceOp::kProd ? result[i] * next[i] : result[i] + next[i];
  }
  return result;
}

/// Counts the elements whose bits differ from the reduction in rank order.
template <typename T>
std::size_t off_the_order(hips::Communicator& comm, std::uint64_t seed, std::size_t count, ReduceOp op,
                          Digest& digest) {
  std::vector<T> values = operands<T>(seed, comm.rank(), count);
  comm.allreduce<T>(values, op);
  digest.add(values);
  const std::vector<T> right = reduced_by_rank<T>(seed, comm.size(), count, op);
  std::size_t off = 0;
  for (std::size_t i = 0; i < count; ++i) off += std::memcmp(&values[i], &right[i], sizeof(T)) != 0;
  return off;
}

/// Reduces all types, ops and counts on one communicator. Returns "N off, digest D".
std::string reduce_all(hips::Communicator& comm, std::uint64_t seed) {
  Digest digest;
  std::size_t off = 0;
  for (const std::size_t count : {1, 2, 7, 64, 1031, 30011}) {
    if (count > 10'000 && hips::test::runs_a_sample()) continue;
    off += off_the_order<float>(comm, seed, count, ReduceOp::kSum, digest);
    off += off_the_order<double>(comm, seed, count, ReduceOp::kSum, digest);
    off += off_the_order<float>(comm, seed, count, ReduceOp::kProd, digest);
  }
  return std::to_string(off) + " off, digest " + digest.text();
}

std::string run(int num_ranks, std::uint64_t seed, const Environment& environment) {
  const auto body = [seed](int, const Ready&) {
    auto comm = hips::Communicator::from_environment();
    return reduce_all(comm, seed);
  };
  RankProcesses ranks(num_ranks, body, environment);
  return same_text(ranks.wait());
}

std::vector<Environment> environments_of(int num_ranks) {
  std::vector<Environment> environments = {
      {},  // in shared memory
      {{"HIPS_STAGING_BYTES", "4K"}},
      {{"HIPS_TRANSPORT", "shm"}},
      {{"HIPS_TRANSPORT", "tcp"}, {"HIPS_SEGMENT_BYTES", "4K"}},
      {{"HIPS_TRANSPORT", "shm"}, {"HIPS_SEGMENT_BYTES", "64"}, {"HIPS_CREDITS", "1"}},
      {{"HIPS_TRANSPORT", "shm"}, {"HIPS_SEGMENT_BYTES", "1K"}, {"HIPS_STAGING_BYTES", "64K"}},
  };
  static const std::map<int, std::vector<const char*>> topologies = {
      {4, {"bcube:2,1", "torus:2x2", "switch:2/2"}},
      {6, {"torus:3x2"}},
      {8, {"bcube:2,2", "bcube:2,1/2"}},
      {9, {"bcube:3,1", "rail:9,2", "torus:3x3"}}};
  if (const auto named = topologies.find(num_ranks); named != topologies.end())
    for (const char* topology : named->second) environments.push_back({{"HIPS_TOPO", topology}});
  return environments;
}

class Any : public testing::TestWithParam<int> {};

TEST_P(Any, ReducesEveryElementInRankOrderOnEveryBackend) {
  const std::uint64_t seed = hips::test::seed();
  std::string first;
  for (Environment environment : environments_of(GetParam())) {
    std::string name;
    for (const auto& [variable, value] : environment) name += variable + "=" + value + " ";
    environment["HIPS_REPRODUCIBLE"] = "any";
    const std::string text = run(GetParam(), seed, environment);
    EXPECT_THAT(text, HasSubstr("0 off, ")) << name;
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Any,
                         testing::ValuesIn(hips::test::or_every_nth<int>({2, 3, 4, 5, 6, 7, 8, 9}, 4)));

TEST(Reproducible, DoesNotDependOnTheNumberOfNodes) {
  if (geteuid() != 0) GTEST_SKIP() << "needs to be root, to act as two nodes";
  const std::uint64_t seed = hips::test::seed();
  const std::string one_node = run(4, seed, {{"HIPS_REPRODUCIBLE", "any"}});
  for (const int first_of_the_other : {1, 2}) {
    const auto body = [&](int rank, const Ready&) -> std::string {
      if (rank >= first_of_the_other) hips::test::move_to_another_host();
      try {
        auto comm = hips::Communicator::from_environment();
        return reduce_all(comm, seed);
      } catch (const hips::Error& error) {
        return error.what();
      }
    };
    RankProcesses ranks(4, body, {{"HIPS_REPRODUCIBLE", "any"}});
    const std::string two_nodes = same_text(ranks.wait());
    if (two_nodes.find("only loopback") != two_nodes.npos)
      GTEST_SKIP() << "this node has no interface but loopback: " << two_nodes;
    EXPECT_EQ(two_nodes, one_node);
  }
}

TEST(Reproducible, FollowsThePlanByDefault) {
  // Otherwise the test above would prove nothing.
  const std::string text = run(9, hips::test::seed(), {{"HIPS_TOPO", "bcube:3,1"}});
  EXPECT_THAT(text, Not(testing::StartsWith("0 off")));
}

TEST(Reproducible, GivesTheSameBitsInTwoRuns) {
  const std::uint64_t seed = hips::test::seed();
  for (const char* level : {"off", "run"}) {
    for (Environment environment : hips::test::or_every_nth(environments_of(4), 4)) {
      environment["HIPS_REPRODUCIBLE"] = level;
      const std::string first = run(4, seed, environment);
      EXPECT_EQ(run(4, seed, environment), first);
    }
  }
}

// ---- Rejections ----------------------------------------------------------------------------------------

std::string creation_error(int num_ranks, const Environment& environment, int mismatching_rank = -1,
                           const char* other_level = "") {
  const auto body = [&](int rank, const Ready&) -> std::string {
    if (rank == mismatching_rank) setenv("HIPS_REPRODUCIBLE", other_level, 1);
    try {
      auto comm = hips::Communicator::from_environment();
    } catch (const hips::Error& error) {
      return error.what();
    }
    return "no error";
  };
  RankProcesses ranks(num_ranks, body, environment);
  return same_text(ranks.wait());
}

TEST(Reproducible, RejectsAnInvalidLevelAndNamesTheValidOnes) {
  EXPECT_THAT(creation_error(2, {{"HIPS_REPRODUCIBLE", "always"}}),
              HasSubstr("HIPS_REPRODUCIBLE=\"always\" is wrong: give off, run or any"));
}

TEST(Reproducible, RejectsANamedPlan) {
  for (const auto& [name, value] :
       Environment{{"HIPS_ALGORITHM", "flat-ring"}, {"HIPS_PATTERN", "ring"}, {"HIPS_LEADERS", "1"}}) {
    EXPECT_THAT(creation_error(2, {{"HIPS_REPRODUCIBLE", "any"}, {name, value}}),
                HasSubstr("HIPS_REPRODUCIBLE=any uses its own plan"))
        << name;
  }
  EXPECT_EQ(creation_error(2, {{"HIPS_REPRODUCIBLE", "run"}, {"HIPS_ALGORITHM", "flat-ring"}}), "no error");
}

TEST(Reproducible, RejectsDifferentLevelsOnRanks) {
  EXPECT_THAT(creation_error(3, {}, 1, "any"),
              HasSubstr("the ranks disagree on the reproducibility: rank 1 has \"any\""));
  EXPECT_THAT(creation_error(3, {{"HIPS_REPRODUCIBLE", "any"}}, 2, "run"),
              HasSubstr("the ranks disagree on the reproducibility: rank 2 has \"run\""));
}

// ---- Cost ----------------------------------------------------------------------------------------------

TEST(RankOrder, ComparesItsCostWithTheDefaultPlan) {
  const auto order = hips::comm::make_rank_order(hips::parse_topology("bcube:3,1"));
  ASSERT_TRUE(order);
  // Eight peers instead of two on each of two levels, in both directions; half of the pairs need a relay.
  EXPECT_THAT(order->cost_comparison,
              AllOf(HasSubstr("flat mesh of 9 ranks instead of HiPS"),
                    HasSubstr("16 messages per rank instead of 16"), HasSubstr("2 steps instead of 4"),
                    HasSubstr("bytes over the busiest link instead of")));
}

}  // namespace
}  // namespace reproducible_test
