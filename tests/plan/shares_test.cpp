#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <random>

#include "lib/plan/fabric/lane_shares.hpp"
#include "tests/choices.hpp"

namespace hips::plan {

// gtest prints these in failures, and finds the operator by its namespace.
std::ostream& operator<<(std::ostream& out, const LaneOrder& order) {
  out << order.begin.num << "/" << order.begin.den << "-" << order.end.num << "/" << order.end.den << " by";
  for (const std::int32_t level : order.levels) out << " " << level;
  return out;
}

namespace {

std::vector<LevelRate> equal_links(std::initializer_list<std::int64_t> radices) {
  std::vector<LevelRate> levels;
  for (const std::int64_t radix : radices) levels.push_back({radix, 12.5e9});
  return levels;
}

/// The lanes' shares in lowest terms, "5/6 1/6".
std::string shares(const std::vector<LevelRate>& levels) {
  std::string text;
  for (const LaneOrder& order : lane_orders(levels)) {
    const std::int64_t num = order.end.num * order.begin.den - order.begin.num * order.end.den;
    const std::int64_t den = order.begin.den * order.end.den;
    const std::int64_t divisor = std::gcd(num, den);
    text += (text.empty() ? "" : " ") + std::to_string(num / divisor) + "/" + std::to_string(den / divisor);
  }
  return text;
}

TEST(LaneShares, AreTheClosedFormOnEqualLinks) {
  EXPECT_EQ(shares(equal_links({3, 3})), "1/2 1/2");
  EXPECT_EQ(shares(equal_links({2, 4})), "5/6 1/6");
  EXPECT_EQ(shares(equal_links({4, 3})), "5/12 7/12");
  EXPECT_EQ(shares(equal_links({5, 2})), "1/8 7/8");
  EXPECT_EQ(shares(equal_links({2, 3, 4})), "5/9 1/6 5/18");
  EXPECT_EQ(shares(equal_links({3, 3, 2, 2})), "1/8 1/4 3/8 1/4");
  EXPECT_EQ(shares(equal_links({7})), "1/1");
  // Torus 4x2 where the side of 2 has a single cable: two ports against one.
  EXPECT_EQ(shares({{4, 2}, {2, 1}}), "5/9 4/9");
}

TEST(LaneShares, FollowBandwidthsThatDiffer) {
  EXPECT_EQ(shares({{3, 10e9}, {3, 5e9}}), "5/6 1/6");
  EXPECT_EQ(shares({{3, 10e9}, {3, 5e9}, {3, 2.5e9}}), "11/14 1/7 1/14");
  // One level is so slow that cyclic shares would be negative: all lanes visit it last.
  EXPECT_EQ(shares({{3, 10e9}, {3, 1e9}}), "1/1");
  EXPECT_EQ(lane_orders(std::vector<LevelRate>{{3, 1e9}, {3, 10e9}}).front().levels,
            (std::vector<std::int32_t>{1, 0}));
}

TEST(LaneShares, MeetThePublishedTimes) {
  const auto time = [](const std::vector<LevelRate>& levels) {
    return 2 * busiest_level(levels, lane_orders(levels));
  };
  EXPECT_NEAR(time({{3, 10}, {3, 5}}), 16.0 / 135, 1e-9);
  EXPECT_NEAR(time({{3, 10}, {3, 1}}), 4.0 / 9, 1e-9);
  EXPECT_NEAR(time({{3, 10}, {3, 5}, {3, 2.5}}), 104.0 / 945, 1e-9);
  // The optimum mixes orders that are not cyclic.
  EXPECT_NEAR(time({{4, 10}, {4, 5}, {4, 1}}), 63.0 / 512, 1e-9);
}

TEST(LaneShares, CoverTheVectorWithoutGapOnAnyRates) {
  for (std::int64_t n0 = 2; n0 <= 12; ++n0) {
    for (std::int64_t n1 = 2; n1 <= 12; ++n1) {
      for (const double rate : {1.0, 3.0, 0.1, 12.34567, 1e6, 0.0}) {
        for (std::int64_t n2 = 2; n2 <= 4; ++n2) {
          const std::vector<LevelRate> levels{{n0, 12.5e9}, {n1, 12.5e9 * rate}, {n2, 4e9}};
          const std::vector<LaneOrder> orders = lane_orders(levels);
          ASSERT_FALSE(orders.empty());
          Fraction at{0, 1};
          for (const LaneOrder& order : orders) {
            for (std::int32_t part = 0; part < 3; ++part) {
              const LaneOrder cut = part_of(order, part, 3);
              ASSERT_EQ(cut.begin, at) << order;
              ASSERT_LE(cut.begin.den, std::int64_t{1} << 40);
              ASSERT_GE(static_cast<double>(cut.end.num) / static_cast<double>(cut.end.den),
                        static_cast<double>(cut.begin.num) / static_cast<double>(cut.begin.den));
              at = cut.end;
            }
            ASSERT_EQ(at, order.end);
          }
          ASSERT_EQ(at, (Fraction{1, 1}));
        }
      }
    }
  }
}

/// T / W of the bound: the largest over all sets of levels of 2 (prod n - 1) / (N sum B).
double least_seconds(const std::vector<plan::LevelRate>& levels) {
  double all = 1, largest = 0;
  for (const plan::LevelRate& level : levels) all *= static_cast<double>(level.radix);
  for (std::size_t set = 1; set < std::size_t{1} << levels.size(); ++set) {
    double product = 1, bandwidth = 0;
    for (std::size_t l = 0; l < levels.size(); ++l) {
      if ((set >> l & 1) == 0) continue;
      product *= static_cast<double>(levels[l].radix);
      bandwidth += levels[l].bandwidth;
    }
    largest = std::max(largest, 2 * (product - 1) / (all * bandwidth));
  }
  return largest;
}

TEST(LaneShares, OfUnequalLevelsMeetTheBound) {
  struct Pin {
    std::vector<plan::LevelRate> levels;
    double seconds;
  };
  // T / W, as from least_seconds().
  for (const Pin& pin :
       {Pin{{{3, 10}, {3, 5}}, 16.0 / 135}, Pin{{{3, 10}, {3, 1}}, 4.0 / 9},
        Pin{{{3, 10}, {3, 5}, {3, 2.5}}, 104.0 / 945}, Pin{{{4, 10}, {4, 5}, {4, 1}}, 63.0 / 512}}) {
    EXPECT_NEAR(2 * plan::busiest_level(pin.levels, plan::lane_orders(pin.levels)) / pin.seconds, 1, 1e-6);
  }
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 400; ++i) {
    std::vector<plan::LevelRate> levels(1 + random() % 5);
    for (plan::LevelRate& level : levels)
      level = {static_cast<std::int64_t>(2 + random() % 7), static_cast<double>(1 + random() % 40)};
    const auto orders = plan::lane_orders(levels);
    EXPECT_NEAR(2 * plan::busiest_level(levels, orders) / least_seconds(levels), 1, 1e-5);
    EXPECT_LE(orders.size(), levels.size());
  }
}

}  // namespace
}  // namespace hips::plan
