#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "lib/pattern/halving.hpp"
#include "lib/pattern/mesh.hpp"
#include "lib/pattern/multiplying.hpp"
#include "lib/pattern/ps.hpp"
#include "lib/pattern/ring.hpp"

namespace hips::pattern {
namespace {

constexpr std::int64_t kMaxSize = 64;

TEST(Ring, ReducesEveryPieceOverAllMembersToItsOwner) {
  for (std::int64_t n = 1; n <= kMaxSize; ++n) {
    for (const std::int32_t direction : {+1, -1}) {
      const Ring ring{n, direction};
      // operands[j][piece]: the members whose inputs are in member j's partial sum, in the order of
      // reduction.
      std::vector<std::vector<std::vector<std::int64_t>>> operands(n);
      for (std::int64_t j = 0; j < n; ++j) operands[j].assign(n, {j});
      for (std::int64_t round = 0; round < num_rounds(ring); ++round) {
        auto before = operands;
        for (std::int64_t j = 0; j < n; ++j) {
          const std::int64_t piece = scatter_receives(ring, j, round);
          ASSERT_EQ(scatter_sends(ring, prev(ring, j), round), piece);
          ASSERT_EQ(scatter_round_of(ring, prev(ring, j), piece), round);
          operands[j][piece] = before[prev(ring, j)][piece];
          operands[j][piece].push_back(j);
        }
      }
      for (std::int64_t j = 0; j < n; ++j) {
        std::vector<std::int64_t> expected;
        for (std::int64_t i = 1; i <= n; ++i) expected.push_back(modulo(j + direction * i, n));
        ASSERT_EQ(operands[j][j], expected) << "n " << n << " direction " << direction;
      }
    }
  }
}

TEST(Ring, GathersEveryPieceAtEveryMember) {
  for (std::int64_t n = 1; n <= kMaxSize; ++n) {
    for (const std::int32_t direction : {+1, -1}) {
      const Ring ring{n, direction};
      std::vector<std::set<std::int64_t>> has(n);
      for (std::int64_t j = 0; j < n; ++j) has[j] = {j};
      for (std::int64_t round = 0; round < num_rounds(ring); ++round) {
        for (std::int64_t j = 0; j < n; ++j) {
          ASSERT_TRUE(has[j].contains(gather_sends(ring, j, round))) << "sends a piece that it does not have";
        }
        for (std::int64_t j = 0; j < n; ++j) {
          ASSERT_EQ(gather_receives(ring, j, round), gather_sends(ring, prev(ring, j), round));
          ASSERT_TRUE(has[j].insert(gather_receives(ring, j, round)).second)
              << "receives a piece that it has";
        }
      }
      for (std::int64_t j = 0; j < n; ++j) ASSERT_EQ(std::int64_t(has[j].size()), n);
    }
  }
}

TEST(Ring, DirectionsMirrorEachOther) {
  for (std::int64_t n = 2; n <= kMaxSize; ++n) {
    const Ring up{n, +1}, down{n, -1};
    for (std::int64_t j = 0; j < n; ++j) {
      EXPECT_EQ(next(up, j), prev(down, j));
      for (std::int64_t t = 0; t < n - 1; ++t) {
        EXPECT_EQ(scatter_sends(up, j, t), modulo(-scatter_sends(down, modulo(-j, n), t), n));
        EXPECT_EQ(gather_sends(up, j, t), modulo(-gather_sends(down, modulo(-j, n), t), n));
      }
    }
  }
}

TEST(Mesh, EveryRoundIsAPermutationAndAllRoundsReachAllOthers) {
  for (std::int64_t n = 1; n <= kMaxSize; ++n) {
    const Mesh mesh{n};
    EXPECT_EQ(num_rounds(mesh), n > 1 ? 1 : 0);
    for (std::int64_t j = 0; j < n; ++j) {
      std::set<std::int64_t> met;
      for (std::int64_t round = 1; round < n; ++round) {
        met.insert(peer(mesh, j, round));
        EXPECT_EQ(source(mesh, peer(mesh, j, round), round), j);
      }
      EXPECT_EQ(std::int64_t(met.size()), n - 1);
      EXPECT_FALSE(met.contains(j));
    }
  }
}

TEST(Ps, NumbersItsLeaders) {
  for (std::int64_t n = 1; n <= kMaxSize; ++n) {
    for (std::int64_t leaders = 1; leaders <= n; ++leaders) {
      for (std::int64_t first = 0; first < n; ++first) {
        const Ps ps{n, leaders, first};
        std::int64_t count = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          if (!leads(ps, j)) continue;
          ++count;
          ASSERT_LT(leader_index(ps, j), leaders);
          ASSERT_EQ(leader(ps, leader_index(ps, j)), j);
        }
        ASSERT_EQ(count, leaders);
      }
    }
  }
}

TEST(Halving, SpreadsEveryInputToAllCoreMembersInRankOrder) {
  for (std::int64_t n = 1; n <= kMaxSize; ++n) {
    const Halving halving{n};
    ASSERT_LE(halving.core(), n);
    ASSERT_GT(2 * halving.core(), n);
    ASSERT_EQ(std::int64_t{1} << halving.num_rounds(), halving.core());
    std::vector<std::vector<std::int64_t>> holds(halving.core());
    std::set<std::int64_t> outside;
    for (std::int64_t r = 0; r < n; ++r) {
      if (is_outside_core(halving, r)) {
        ASSERT_FALSE(is_outside_core(halving, pair_of(halving, r)));
        ASSERT_LT(pair_of(halving, r), n);
        holds[core_index(halving, pair_of(halving, r))].insert(
            holds[core_index(halving, pair_of(halving, r))].begin(), r);
        outside.insert(r);
      } else {
        ASSERT_EQ(core_member(halving, core_index(halving, r)), r);
        holds[core_index(halving, r)].push_back(r);
      }
    }
    ASSERT_EQ(std::int64_t(outside.size()), halving.rest());
    // The lower one's operands are first, so every member reduces 0, 1, ..., n-1.
    for (std::int32_t round = 0; round < halving.num_rounds(); ++round) {
      const auto before = holds;
      for (std::int64_t v = 0; v < halving.core(); ++v) {
        const std::int64_t peer = exchange_peer(v, round);
        holds[v] = before[std::min(v, peer)];
        holds[v].insert(holds[v].end(), before[std::max(v, peer)].begin(), before[std::max(v, peer)].end());
      }
    }
    std::vector<std::int64_t> everyone;
    for (std::int64_t r = 0; r < n; ++r) everyone.push_back(r);
    for (std::int64_t v = 0; v < halving.core(); ++v) ASSERT_EQ(holds[v], everyone) << "n " << n;
  }
}

TEST(Multiplying, HasTheLargestCoreWithSmallFactors) {
  const std::map<std::int64_t, std::vector<std::int64_t>> radices{{1, {}},      {2, {2}},
                                                                  {3, {3}},     {4, {4}},
                                                                  {5, {5}},     {6, {3, 2}},
                                                                  {7, {7}},     {8, {4, 2}},
                                                                  {9, {3, 3}},  {10, {2, 5}},
                                                                  {11, {2, 5}}, {16, {4, 4}},
                                                                  {23, {3, 7}}, {1024, {4, 4, 4, 4, 4}}};
  for (const auto& [size, expected] : radices) EXPECT_EQ(Multiplying{size}.radices(), expected) << size;
  for (std::int64_t size = 1; size <= 10'000; ++size) {
    const Multiplying multiplying{size};
    std::int64_t product = 1;
    for (const std::int64_t radix : multiplying.radices()) product *= radix;
    ASSERT_EQ(product, multiplying.core()) << size;
    ASSERT_LE(multiplying.core(), size);
    // Pairs are two of the members.
    ASSERT_LE(2 * multiplying.rest(), size);
  }
}

}  // namespace
}  // namespace hips::pattern
