#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lib/pattern/swing.hpp"
#include "lib/pattern/tree.hpp"

namespace hips::pattern {
namespace {

TEST(BinaryTree, ParentsAndChildrenAgreeAndNodeZeroIsAboveAll) {
  for (std::int64_t size = 1; size <= 300; ++size) {
    const BinaryTree tree{size};
    std::int64_t deepest = 0;
    for (std::int64_t node = 0; node < size; ++node) {
      std::set<std::int64_t> below;
      for (const bool second : {false, true}) {
        if (const std::int64_t child = child_of(tree, node, second); child >= 0) {
          ASSERT_LT(child, size);
          EXPECT_EQ(parent_of(tree, child), node) << "of " << size;
          EXPECT_TRUE(below.insert(child).second);
        }
      }
      std::int64_t hops = 0;
      for (std::int64_t up = node; up != 0; up = parent_of(tree, up)) ASSERT_LE(++hops, size);
      deepest = std::max(deepest, hops);
      if (node == 0) continue;
      const std::int64_t parent = parent_of(tree, node);
      EXPECT_TRUE(child_of(tree, parent, false) == node || child_of(tree, parent, true) == node)
          << node << " of " << size;
    }
    EXPECT_LE(deepest, depth_of(tree)) << size;
  }
}

TEST(BinaryTree, AnInnerRankOfOneTreeIsALeafOfTheOther) {
  for (std::int64_t size = 2; size <= 200; ++size) {
    const BinaryTree tree{size};
    for (std::int64_t rank = 0; rank < size; ++rank) {
      const std::int64_t place = place_in_second(tree, rank);
      EXPECT_EQ(rank_in_second(tree, place), rank);
      const auto children = [&](std::int64_t node) {
        return (child_of(tree, node, false) >= 0) + (child_of(tree, node, true) >= 0);
      };
      // Node 0 has one child, and in an odd number of ranks it may be inner in the other tree.
      EXPECT_LE(children(rank) + children(place), rank == 0 || place == 0 ? 3 : 2) << rank << " of " << size;
    }
  }
}

TEST(Swing, PartnersAreMutualAndAtMostAThirdOfTheRingApart) {
  for (std::int64_t size = 2; size <= 1024; size *= 2) {
    for (const std::int32_t direction : {+1, -1}) {
      const Swing swing{size, direction};
      for (std::int32_t round = 0; round < swing.num_rounds(); ++round) {
        for (std::int64_t member = 0; member < size; ++member) {
          const std::int64_t peer = swing_peer(swing, member, round);
          EXPECT_EQ(swing_peer(swing, peer, round), member);
          EXPECT_NE(swing_half(swing, peer, round), swing_half(swing, member, round));
          EXPECT_LE(3 * std::abs(swing_offset(swing, member, round)), (std::int64_t{2} << round) + 1);
          // Both hold the same pieces: the halves that they kept before.
          for (std::int32_t before = 0; before < round; ++before)
            EXPECT_EQ(swing_half(swing, peer, before), swing_half(swing, member, before));
        }
      }
    }
  }
}

}  // namespace
}  // namespace hips::pattern
