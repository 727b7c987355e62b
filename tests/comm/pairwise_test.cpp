// The rows that represent a whole matrix.

#include "tests/pairwise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "tests/choices.hpp"

namespace hips::test {
namespace {

using Pairs = std::set<std::tuple<std::size_t, int, std::size_t, int>>;

Pairs pairs_of(const std::vector<MatrixRow>& rows) {
  Pairs pairs;
  for (const MatrixRow& row : rows)
    for (std::size_t a = 0; a < row.size(); ++a)
      for (std::size_t b = a + 1; b < row.size(); ++b) pairs.insert({a, row[a], b, row[b]});
  return pairs;
}

/// Forbids a combination of values of three axes.
struct Rule {
  std::size_t axes[3];
  int values[3];
  [[nodiscard]] bool allows(const MatrixRow& row) const {
    bool broken = true;
    for (int i = 0; i < 3; ++i) broken &= row[axes[i]] == values[i];
    return !broken;
  }
};

// Under any rules the rows contain exactly the pairs of the whole matrix, and no forbidden row.
TEST(Pairwise, CoversAllPairsOfTheMatrix) {
  std::mt19937_64 random(seed());
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int> sizes(2 + random() % 4);
    for (int& size : sizes) size = 1 + static_cast<int>(random() % 5);
    std::vector<Rule> rules(random() % 12);
    for (Rule& rule : rules)
      for (int i = 0; i < 3; ++i) {
        // The same axis twice forbids a pair of values, three times a single value.
        rule.axes[i] = i > 0 && random() % 2 == 0 ? rule.axes[i - 1] : random() % sizes.size();
        rule.values[i] = i > 0 && rule.axes[i] == rule.axes[i - 1]
                             ? rule.values[i - 1]
                             : static_cast<int>(random() % static_cast<unsigned>(sizes[rule.axes[i]]));
      }
    const Allowed allowed = [&](const MatrixRow& row) {
      return std::ranges::all_of(rules, [&](const Rule& rule) { return rule.allows(row); });
    };
    const auto rows = Pairwise(sizes, allowed, random).rows();
    EXPECT_EQ(pairs_of(rows), pairs_of(all_rows(sizes, allowed)));
    for (const MatrixRow& row : rows) EXPECT_TRUE(allowed(row));
  }
}

TEST(Pairwise, IsShortAndTheSameForTheSameSeed) {
  const std::vector<int> sizes = {13, 12, 8, 8, 7, 3, 3, 2};
  const Allowed all = [](const MatrixRow&) { return true; };
  std::mt19937_64 first(7), second(7);
  const auto rows = Pairwise(sizes, all, first).rows();
  EXPECT_EQ(rows, Pairwise(sizes, all, second).rows());
  EXPECT_GE(rows.size(), 13U * 12U);
  EXPECT_LE(rows.size(), 13U * 12U * 3 / 2);
  EXPECT_EQ(all_rows({2, 3, 4}, all).size(), 24U);
}

}  // namespace
}  // namespace hips::test
