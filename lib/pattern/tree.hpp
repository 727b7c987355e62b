#pragma once

#include <bit>
#include <cstdint>

namespace hips::pattern {

/// A binary tree whose nodes in order are 0, 1, 2, ...: children are close to their parents, and every odd
/// number is a leaf. Node 0 is the parent of the root of all others.
///
///   size 8         0
///                  +-----4
///                     +--2--+--6
///                     1  3  5  7
struct BinaryTree {
  std::int64_t size = 0;
};

/// -1 for node 0.
constexpr std::int64_t parent_of(const BinaryTree& tree, std::int64_t node) {
  if (node == 0) return -1;
  const std::int64_t bit = node & -node;
  const std::int64_t up = (node ^ bit) | (bit << 1);
  // Numbers beyond the end do not exist: the parent is then the next ancestor to the left.
  return up < tree.size ? up : node ^ bit;
}

/// A child of a node, -1 for none; the first child is the one with the smaller number.
constexpr std::int64_t child_of(const BinaryTree& tree, std::int64_t node, bool second) {
  if (node == 0) {
    if (second || tree.size < 2) return -1;
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(tree.size - 1)));
  }
  std::int64_t half = (node & -node) >> 1;
  if (half == 0) return -1;
  if (!second) return node - half;
  while (half > 0 && node + half >= tree.size) half >>= 1;
  return half == 0 ? -1 : node + half;
}

/// The node of a rank in the second of two trees, of which no rank is an inner node of both. An odd number of
/// ranks is shifted by one, an even number mirrored, which exchanges even and odd numbers.
constexpr std::int64_t place_in_second(const BinaryTree& tree, std::int64_t rank) {
  return tree.size % 2 == 1 ? (rank + tree.size - 1) % tree.size : tree.size - 1 - rank;
}
/// The rank of a node of the second tree.
constexpr std::int64_t rank_in_second(const BinaryTree& tree, std::int64_t place) {
  return tree.size % 2 == 1 ? (place + 1) % tree.size : tree.size - 1 - place;
}

/// Hops from node 0 to the lowest node.
constexpr std::int64_t depth_of(const BinaryTree& tree) {
  return tree.size < 2 ? 0 : std::bit_width(static_cast<std::uint64_t>(tree.size - 1));
}

}  // namespace hips::pattern
