// The linear program of lane shares and tree weights: its optimum, why it stops, and its bits.

#include "lib/plan/fabric/packing_lp.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/plan/builder.hpp"
#include "lib/plan/fabric/lane_shares.hpp"
#include "lib/plan/fabric/tree_packing.hpp"
#include "tests/choices.hpp"

namespace hips::plan {
namespace {

constexpr std::int64_t kEnough = std::int64_t{1} << 28;
using Column = std::vector<double>;

struct Instance {
  std::vector<double> c;
  std::vector<Column> columns;
  [[nodiscard]] PackingLp program() const {
    PackingLp made(c);
    for (const Column& column : columns) made.add_column(column);
    return made;
  }
};

/// Few distinct entries, so that most corners are degenerate and many columns are alike.
Instance drawn(std::mt19937_64& random) {
  Instance made;
  const std::size_t rows = 1 + random() % 8, columns = 1 + random() % 30;
  const bool by_powers = random() % 4 == 0;
  for (std::size_t r = 0; r < rows; ++r)
    made.c.push_back(by_powers ? std::ldexp(1.0, -static_cast<int>(random() % 12))
                               : static_cast<double>(1 + random() % 3));
  for (std::size_t k = 0; k < columns; ++k) {
    Column column(rows, 0.0);
    for (double& entry : column) entry = static_cast<double>(random() % 3);
    column[random() % rows] += 1;
    made.columns.push_back(std::move(column));
  }
  return made;
}

/// The largest error of a solution: rows above c, columns whose duals sum to less than 1, and the gap between
/// both objectives. It is 0 at the optimum only.
double distance_from_optimum(const Instance& instance, const PackingLp& program) {
  const std::vector<double> x = program.x(), duals = program.duals();
  double worst = 0, primal = 0, dual = 0;
  for (std::size_t r = 0; r < instance.c.size(); ++r) {
    double load = 0;
    for (std::size_t k = 0; k < x.size(); ++k) load += instance.columns[k][r] * x[k];
    worst = std::max(worst, load - instance.c[r]);
    dual += instance.c[r] * duals[r];
  }
  for (const Column& column : instance.columns) {
    double cost = 0;
    for (std::size_t r = 0; r < column.size(); ++r) cost += column[r] * duals[r];
    worst = std::max(worst, 1 - cost);
  }
  for (const double value : x) primal += value;
  return std::max({worst, std::fabs(primal - dual), std::fabs(primal - program.value())});
}

TEST(PackingLp, ReachesTheOptimumOfAnyProgram) {
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 3000; ++i) {
    const Instance instance = drawn(random);
    PackingLp program = instance.program();
    ASSERT_EQ(program.solve(kEnough), LpEnd::kOptimal);
    ASSERT_LT(distance_from_optimum(instance, program), 1e-9);
  }
}

TEST(PackingLp, ContinuesWithNewColumns) {
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 500; ++i) {
    const Instance instance = drawn(random);
    PackingLp program(instance.c);
    double last = 0;
    for (const Column& column : instance.columns) {
      program.add_column(column);
      ASSERT_EQ(program.solve(kEnough), LpEnd::kOptimal);
      ASSERT_GE(program.value(), last - 1e-12);
      last = program.value();
    }
    ASSERT_LT(distance_from_optimum(instance, program), 1e-9);
  }
}

TEST(PackingLp, ReportsThatItStoppedBeforeTheOptimum) {
  // Three disjoint columns: each takes one pivot.
  const Instance instance{{1, 1, 1}, {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  PackingLp program = instance.program();
  EXPECT_EQ(program.solve(0), LpEnd::kOutOfWork);
  EXPECT_EQ(program.value(), 0);
  EXPECT_EQ(program.solve(1), LpEnd::kOutOfWork);
  EXPECT_EQ(program.value(), 1);
  EXPECT_EQ(program.work(), 3 * 6);
  EXPECT_EQ(program.solve(kEnough), LpEnd::kOptimal);
  EXPECT_EQ(program.value(), 3);
  EXPECT_EQ(program.work(), 3 * 3 * 6);
  // At the optimum no limit is too small.
  EXPECT_EQ(program.solve(0), LpEnd::kOptimal);
}

TEST(PackingLp, ReportsThatRoundingHasLostAColumn) {
  // Entries below 1e-9 count as rounding errors, so nothing limits this column.
  const Instance instance{{1, 1}, {{1, 0}, {1e-12, 1e-12}}};
  PackingLp program = instance.program();
  EXPECT_EQ(program.solve(kEnough), LpEnd::kLost);
}

TEST(PackingLp, ATreePackingReportsThatItsSearchStoppedEarly) {
  for (const auto& [spec, stopped] :
       {std::pair("bcube:3,1[0-4,8]", false), {"mesh:4x4x3", false}, {"torus:8x8[0-62]", true}}) {
    const Topology topology = parse_topology(spec);
    const auto packing = pack_trees(topology);
    ASSERT_TRUE(packing);
    EXPECT_EQ(packing->stopped_early, stopped) << spec;
    const auto builder = make_builder(topology, {.algorithm = "trees"});
    ASSERT_TRUE(builder);
    EXPECT_EQ((*builder)->shape().description.find("search stopped at its limit") != std::string::npos,
              stopped)
        << spec;
  }
}

std::vector<std::uint64_t> bits(const std::vector<double>& values) {
  std::vector<std::uint64_t> all;
  for (const double value : values) all.push_back(std::bit_cast<std::uint64_t>(value));
  return all;
}

// All ranks must find the same corner, otherwise they have different plans. The results are thus exact on
// every CPU and compiler.

TEST(PackingLpBits, OfAProgramAreTheSameEverywhere) {
  // Rates and entries are not binary fractions.
  const Instance instance{{1, 0.7, 0.3, 0.9, 0.1},
                          {{2.0 / 3, 0.4, 0.1, 0.2, 0.05},
                           {0.3, 1.0 / 7, 0.7, 0.1, 0.1},
                           {0.2, 0.9, 0.1, 1.1 / 3, 0},
                           {0.7, 0.1, 0.3, 0.3, 0.02},
                           {0.1, 0.2, 0.3, 1.3, 0.03},
                           {1.0 / 9, 0.6, 0, 0.7, 0.09},
                           {0.5, 0.3, 0.2, 0.6, 0.01}}};
  PackingLp program = instance.program();
  ASSERT_EQ(program.solve(kEnough), LpEnd::kOptimal);
  ASSERT_LT(distance_from_optimum(instance, program), 1e-12);
  EXPECT_THAT(bits(program.x()),
              ::testing::ElementsAreArray(bits({0x1.0a11e6efe35b4p-1, 0, 0, 0x1.84407292cc157p-1, 0,
                                                0x1.48f377f1ada66p-1, 0x1.a4b3055ee1909p-4})));
  EXPECT_THAT(bits(program.duals()),
              ::testing::ElementsAreArray(bits({0x1.92cc157b86426p-3, 0x1.6ba2e8ba2e8bdp+0,
                                                0x1.2762762762766p+1, 0, 0x1.660abdc32203ap+0})));
}

TEST(PackingLpBits, OfLaneSharesAreTheSameEverywhere) {
  struct Golden {
    std::vector<LevelRate> levels;
    std::string orders;
  };
  for (const Golden& golden :
       {Golden{{{4, 10}, {4, 5}, {4, 1}},
               "012 864720082261/1099511627776 102 984979166549/1099511627776 120 1/1 "},
        Golden{{{3, 100}, {5, 7}, {2, 25}, {4, 1}}, "0123 5/16 0213 1/1 "}}) {
    std::string text;
    for (const LaneOrder& order : lane_orders(golden.levels)) {
      for (const std::int32_t level : order.levels) text += std::to_string(level);
      text += " " + std::to_string(order.end.num) + "/" + std::to_string(order.end.den) + " ";
    }
    EXPECT_EQ(text, golden.orders);
  }
}

/// A hash of all bits of a packing: FNV-1a over whole words.
std::uint64_t hash_of(const TreePacking& packing) {
  std::uint64_t hash = 1469598103934665603U;
  const auto add = [&](auto value) { hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211U; };
  for (const WeightedTree& tree : packing.trees) {
    add(std::bit_cast<std::uint64_t>(tree.share));
    add(tree.root);
    add(tree.depth);
    for (const TreeEdge& edge : tree.edges) {
      add(edge.a);
      add(edge.b);
      add(edge.a_rail);
      add(edge.b_rail);
    }
  }
  return hash;
}

TEST(PackingLpBits, OfTreePackingsAreTheSameEverywhere) {
  struct Golden {
    const char* spec;
    std::uint64_t hash;
    double seconds_per_byte;
  };
  for (const Golden& golden :
       {Golden{"bcube:3,1[0-4,8]", 0xfd283c88380b4ec6, 0x1.5fd7fe1796495p-34},
        Golden{"torus:3x3x3[0-11,14-24,26]", 0x7fe2c298573b8798, 0x1.049ffe96366f3p-35},
        Golden{"leafspine:3,4,2[0-4,8]/2", 0x850bdd683b8c3108, 0x1.2533fe68fd3d2p-33},
        Golden{"mesh:4x4x3", 0x287a52ea195154ee, 0x1.44c760b34fa63p-35},
        Golden{"torus:8x8[0-62]", 0x920f9158d670be0e, 0x1.633f4e3f701e4p-35},
        Golden{"fattree:10[0-200]", 0xfeb0e6d6e0c81fdf, 0x1.5fd7fe1796495p-33}}) {
    const auto packing = pack_trees(parse_topology(golden.spec));
    ASSERT_TRUE(packing);
    EXPECT_EQ(hash_of(*packing), golden.hash) << golden.spec;
    EXPECT_EQ(packing->seconds_per_byte, golden.seconds_per_byte) << golden.spec;
  }
}

}  // namespace
}  // namespace hips::plan
