#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "lib/pattern/grid_cycle.hpp"

namespace hips::pattern {
namespace {

using Radices = std::vector<std::int64_t>;

std::vector<Radices> all_radices(std::int64_t max_servers) {
  std::vector<Radices> all;
  const auto extend = [&](const auto& self, const Radices& prefix, std::int64_t servers) -> void {
    for (std::int64_t radix = 2; servers * radix <= max_servers; ++radix) {
      Radices radices = prefix;
      radices.push_back(radix);
      all.push_back(radices);
      self(self, radices, servers * radix);
    }
  };
  extend(extend, {}, 1);
  return all;
}

/// Is b reached from a by a step of +1 or -1 (mod radix) in exactly one digit?
bool are_neighbours(const Radices& radices, std::int64_t a, std::int64_t b) {
  int changed = 0;
  bool by_one = true;
  for (const std::int64_t radix : radices) {
    const std::int64_t up = ((b - a) % radix + radix) % radix;
    if (up != 0) {
      ++changed;
      by_one = up == 1 || up == radix - 1;
    }
    a /= radix;
    b /= radix;
  }
  return changed == 1 && by_one;
}

TEST(GridCycle, VisitsEveryServerOnceByNeighbours) {
  for (const Radices& radices : all_radices(256)) {
    const GridCycle cycle(radices);
    std::set<std::int64_t> seen;
    for (std::int64_t index = 0; index < cycle.size(); ++index) {
      const std::int64_t server = cycle.server_at(index);
      const std::int64_t next = cycle.server_at((index + 1) % cycle.size());
      ASSERT_TRUE(are_neighbours(radices, server, next))
          << fmt::format("{}: {} -> {}", radices, server, next);
      ASSERT_EQ(cycle.index_of(server), index) << fmt::format("{}", radices);
      ASSERT_TRUE(seen.insert(server).second) << fmt::format("{}: {} twice", radices, server);
    }
    ASSERT_EQ(*seen.rbegin(), cycle.size() - 1);
  }
}

TEST(GridCycle, CostsTheNumberOfDigits) {
  // 10^18 servers: a table of them or a walk along the cycle would never end.
  const Radices radices(18, 10);
  const GridCycle cycle(radices);
  EXPECT_EQ(cycle.size(), 1'000'000'000'000'000'000);
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto index = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(cycle.size()));
    const std::int64_t server = cycle.server_at(index);
    ASSERT_EQ(cycle.index_of(server), index);
    ASSERT_TRUE(are_neighbours(radices, server, cycle.server_at((index + 1) % cycle.size()))) << index;
  }
}

TEST(DiagonalCycle, CostsTheNumberOfDigits) {
  constexpr std::int64_t kSide = 1'000'000'000;
  const std::int64_t num_first = DiagonalCycle::find_num_first(kSide, kSide);
  ASSERT_EQ(num_first, 1);
  std::mt19937_64 random(1);
  for (const std::int32_t which : {0, 1}) {
    const DiagonalCycle cycle(kSide, kSide, num_first, which);
    for (int i = 0; i < 1000; ++i) {
      const auto index = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(kSide * kSide));
      const std::int64_t server = cycle.server_at(index);
      ASSERT_EQ(cycle.index_of(server), index);
      ASSERT_TRUE(are_neighbours({kSide, kSide}, server, cycle.server_at((index + 1) % (kSide * kSide))))
          << index;
    }
  }
}

TEST(DiagonalCycle, PairsLeaveAndReachEveryServerOnDifferentLevels) {
  int found = 0;
  for (std::int64_t n0 = 2; n0 <= 24; ++n0) {
    for (std::int64_t n1 = 2; n1 <= 24; ++n1) {
      const std::int64_t num_first = DiagonalCycle::find_num_first(n0, n1);
      if (n0 == n1) {
        ASSERT_EQ(num_first, 1) << "equal sides always have a pair";
      }
      if (num_first == 0) continue;
      ++found;
      const Radices radices{n0, n1};
      std::vector<std::int32_t> reached_on(n0 * n1, -1);
      for (const std::int32_t which : {0, 1}) {
        const DiagonalCycle cycle(n0, n1, num_first, which);
        std::set<std::int64_t> seen;
        for (std::int64_t index = 0; index < n0 * n1; ++index) {
          const std::int64_t server = cycle.server_at(index);
          const std::int64_t next = cycle.server_at((index + 1) % (n0 * n1));
          ASSERT_EQ(cycle.index_of(server), index) << n0 << "x" << n1;
          ASSERT_TRUE(seen.insert(server).second);
          const std::int32_t level = cycle.leaves_on(server);
          ASSERT_EQ(level == 0 ? (server % n0 + 1) % n0 + server / n0 * n0 : (server + n0) % (n0 * n1), next);
          ASSERT_EQ(level, which == 0 ? level : 1 - DiagonalCycle(n0, n1, num_first, 0).leaves_on(server));
          ASSERT_NE(reached_on[next], level) << "both cycles reach " << next << " on level " << level;
          reached_on[next] = level;
        }
      }
    }
  }
  EXPECT_GT(found, 100);
}

TEST(DiagonalCycle, StepsOnLevelZeroWhereTheDigitsSumToZero) {
  const DiagonalCycle cycle(3, 3, 1, 0);
  std::vector<std::int64_t> servers;
  for (std::int64_t index = 0; index < 9; ++index) servers.push_back(cycle.server_at(index));
  EXPECT_EQ(servers, (std::vector<std::int64_t>{0, 1, 4, 7, 8, 2, 5, 3, 6}));
}

}  // namespace
}  // namespace hips::pattern
