// Segments of processes and the blocks of communicators in them. Ranks are threads, or take turns on one.

#include "lib/node/node_segment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/node/node_team.hpp"
#include "tests/choices.hpp"
#include "tests/node/teams.hpp"

namespace hips::node {
namespace {

using hips::test::on_all_ranks;
using hips::test::runs_a_sample;
using hips::test::seed;

std::size_t num_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

std::size_t num_mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

/// The processes of a node.
class Node {
 public:
  explicit Node(Rank size) {
    for (Rank rank = 0; rank < size; ++rank) segments_.push_back(value_or_throw(NodeSegment::create()));
  }

  /// A rank's team of the communicator whose members are these processes.
  std::unique_ptr<NodeTeam> team(std::uint64_t id, const std::vector<Rank>& members, Rank process) {
    const auto& own = segments_[static_cast<std::size_t>(process)];
    auto team = value_or_throw(
        NodeTeam::create({.segment = own,
                          .id = id,
                          .rank = static_cast<Rank>(std::ranges::find(members, process) - members.begin()),
                          .size = static_cast<Rank>(members.size())}));
    std::vector<std::shared_ptr<NodePeer>> peers;
    for (const Rank member : members)
      peers.push_back(value_or_throw(own->peer(segments_[static_cast<std::size_t>(member)]->name())));
    team->connect(std::move(peers));
    return team;
  }
  NodeSegment& segment(Rank process) { return *segments_[static_cast<std::size_t>(process)]; }

 private:
  std::vector<std::shared_ptr<NodeSegment>> segments_;
};

/// The sum of rank + 1 over all ranks, from a vector of `count`; -1 if an element is wrong.
double sum(NodeTeam& team, Rank rank, std::size_t count) {
  std::vector<double> data(count, rank + 1);
  auto* const bytes = reinterpret_cast<std::byte*>(data.data());
  team.start({.in = bytes, .out = bytes, .count = count, .type = DataType::kFloat64, .op = ReduceOp::kSum});
  if (Status status = team.wait({}); !status.ok()) throw Error(status);
  return std::ranges::all_of(data, [&](double value) { return value == data[0]; }) ? data[0] : -1;
}

TEST(NodeSegment, AThousandTeamsNeedOneDescriptorAndOneMapping) {
  const std::size_t before = num_descriptors();
  Node node(2);
  const std::size_t mappings = num_mappings();
  EXPECT_EQ(num_descriptors(), before + 2);
  std::vector<std::vector<std::unique_ptr<NodeTeam>>> teams(2);
  on_all_ranks(2, [&](Rank rank) {
    for (std::uint64_t id = 1; id <= 1000; ++id)
      teams[static_cast<std::size_t>(rank)].push_back(node.team(id, {0, 1}, rank));
    for (auto& team : teams[static_cast<std::size_t>(rank)]) EXPECT_EQ(sum(*team, rank, 5), 3);
  });
  EXPECT_EQ(num_descriptors(), before + 2);
  EXPECT_LT(num_mappings(), mappings + 20);  // stacks and heaps of threads
  EXPECT_EQ(node.segment(0).num_blocks(), 1000U);
  teams.clear();
  EXPECT_EQ(node.segment(1).num_blocks(), 0U);
}

TEST(NodeSegment, IsUsedAgainWhenAllHaveClosed) {
  Node node(2);
  for (std::uint64_t id = 1; id <= (runs_a_sample() ? 2000U : 20'000U); ++id) {
    auto first = node.team(id, {0, 1}, 0), second = node.team(id, {0, 1}, 1);
    if (id % 2 == 0) std::swap(first, second);
    first.reset();
  }
  // A process sees what others have closed when it opens the next.
  EXPECT_LE(node.segment(0).num_blocks(), 1U);
  EXPECT_LE(node.segment(1).num_blocks(), 1U);
}

TEST(NodeSegment, KeepsABlockUntilTheLastRankHasReadIt) {
  Node node(3);
  const std::vector<Rank> all{0, 1, 2};
  constexpr std::size_t kCount = 2000;  // in staging
  auto late = node.team(1, all, 2);
  std::vector<double> data(kCount, 100);
  auto* const bytes = reinterpret_cast<std::byte*>(data.data());
  late->start({.in = bytes, .out = bytes, .count = kCount, .type = DataType::kFloat64, .op = ReduceOp::kSum});
  on_all_ranks(2, [&](Rank rank) {
    {
      auto team = node.team(1, all, rank);
      EXPECT_EQ(sum(*team, rank, kCount), 103);
    }
    // Others come and go, and write into staging.
    for (std::uint64_t id = 2; id < 50; ++id) {
      auto team = node.team(id, {0, 1}, rank);
      EXPECT_EQ(sum(*team, rank, kCount), 3);
    }
  });
  ASSERT_TRUE(late->wait({}).ok());
  EXPECT_THAT(data, testing::Each(103));
  late.reset();
  for (Rank process = 0; process < 3; ++process) {
    (void)node.team(100, {process}, process);
    EXPECT_LE(node.segment(process).num_blocks(), 1U) << process;
  }
}

TEST(NodeSegment, IsUsedAgainWhenARankClosesBeforeAnotherOpens) {
  Node node(3);
  for (std::uint64_t id = 1; id <= 3000; ++id) {
    std::vector<Rank> order{0, 1, 2};
    std::ranges::shuffle(order, std::mt19937_64(seed() + id));
    for (const Rank process : order) (void)node.team(id, {0, 1, 2}, process);
  }
  for (Rank process = 0; process < 3; ++process) {
    for (std::uint64_t id = 0; id < 10; ++id) (void)node.team(10'000 + id, {process}, process);
    EXPECT_LE(node.segment(process).num_blocks(), 1U);
  }
}

TEST(NodeSegment, CallsOfTwoTeamsMayStartInOppositeOrders) {
  Node node(2);
  std::vector<double> sums(4);
  std::vector<std::unique_ptr<NodeTeam>> first, second;
  for (Rank rank = 0; rank < 2; ++rank) {
    first.push_back(node.team(1, {0, 1}, rank));
    second.push_back(node.team(2, {0, 1}, rank));
  }
  std::vector<std::vector<double>> data(4, std::vector<double>(100'000, 1));
  const auto start = [&](NodeTeam& team, std::size_t which) {
    auto* const bytes = reinterpret_cast<std::byte*>(data[which].data());
    team.start({.in = bytes,
                .out = bytes,
                .count = data[which].size(),
                .type = DataType::kFloat64,
                .op = ReduceOp::kSum});
  };
  start(*first[0], 0);
  start(*second[0], 1);
  start(*second[1], 2);
  start(*first[1], 3);
  const auto busy = [](const auto& teams) { return !teams[0]->done() || !teams[1]->done(); };
  while (busy(first) || busy(second)) {
    for (auto* const teams : {&first, &second})
      for (auto& team : *teams) team->advance();
  }
  EXPECT_THAT(data, testing::Each(testing::Each(2)));
}

TEST(NodeSegment, GrowsWithTheTeamsThatUseStagingAndTakesItBack) {
  Node node(2);
  constexpr std::size_t kCount = 100'000;
  const auto use = [&](std::uint64_t first_id) {
    std::vector<std::vector<std::unique_ptr<NodeTeam>>> teams(2);
    on_all_ranks(2, [&](Rank rank) {
      for (std::uint64_t id = 0; id < 60; ++id) {
        teams[static_cast<std::size_t>(rank)].push_back(node.team(first_id + id, {0, 1}, rank));
        EXPECT_EQ(sum(*teams[static_cast<std::size_t>(rank)].back(), rank, kCount), 3);
      }
    });
  };
  use(1);
  const std::size_t grown = num_descriptors();
  for (std::uint64_t round = 1; round < (runs_a_sample() ? 2U : 5U); ++round) use(1 + 1000 * round);
  EXPECT_EQ(num_descriptors(), grown);
}

// Random communicators of the processes of a node, made, used and destroyed in the same order on all their members but at
// any time: blocks of different communicators are opened, found, closed and used again at once.
TEST(NodeSegment, RandomCommunicatorsAreExact) {
  constexpr Rank kSize = 4;
  struct Step {
    std::uint64_t id = 0;
    std::vector<Rank> members;
    bool destroys = false;
    std::size_t count = 0;
  };
  std::mt19937_64 random(seed());
  std::vector<Step> steps;
  std::vector<Step> alive;
  for (std::uint64_t id = 1; id <= (runs_a_sample() ? 300U : 2000U); ++id) {
    std::vector<Rank> members;
    for (Rank rank = 0; rank < kSize; ++rank)
      if (random() % 2 == 0) members.push_back(rank);
    std::ranges::shuffle(members, random);
    if (!members.empty()) {
      alive.push_back({.id = id, .members = members});
      steps.push_back(alive.back());
    }
    for (int uses = 0; uses < 2 && !alive.empty(); ++uses) {
      Step use = alive[random() % alive.size()];
      use.count = random() % 8 == 0 ? 1 + random() % 60'000 : 1 + random() % 3000;
      steps.push_back(use);
    }
    if (alive.size() > 10) {
      const auto gone = alive.begin() + static_cast<std::ptrdiff_t>(random() % alive.size());
      steps.push_back(*gone);
      steps.back().destroys = true;
      alive.erase(gone);
    }
  }
  Node node(kSize);
  std::atomic<int> wrong{0};
  on_all_ranks(kSize, [&](Rank process) {
    std::map<std::uint64_t, std::unique_ptr<NodeTeam>> teams;
    for (const Step& step : steps) {
      if (std::ranges::find(step.members, process) == step.members.end()) continue;
      if (step.destroys) {
        teams.erase(step.id);
      } else if (step.count == 0) {
        teams[step.id] = node.team(step.id, step.members, process);
      } else {
        const auto rank = static_cast<Rank>(std::ranges::find(step.members, process) - step.members.begin());
        const auto size = static_cast<double>(step.members.size());
        if (sum(*teams[step.id], rank, step.count) != size * (size + 1) / 2) ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0);
  for (Rank process = 0; process < kSize; ++process) {
    for (std::uint64_t id = 0; id < 1000; ++id) (void)node.team(10'000 + id, {process}, process);
    EXPECT_LE(node.segment(process).num_blocks(), 1U);
  }
}

TEST(NodeSegment, NamesTheProcessWhoseSegmentIsAnotherOne) {
  auto own = value_or_throw(NodeSegment::create());
  auto other = value_or_throw(SharedMemory::create(4096));
  const auto peer = own->peer({.memory = other.name(), .wake_pipe = {}});
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.error().code, Code::kMismatch);
  EXPECT_THAT(peer.error().message, testing::HasSubstr("4096 bytes of another layout"));
}

}  // namespace
}  // namespace hips::node
