#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace hips::topology {

/// Disjoint sets of numbers that can be merged.
///
/// Cost     nearly constant for each call.
class UnionFind {
 public:
  explicit UnionFind(std::size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  /// The representative of the set of x.
  std::size_t find(std::size_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace hips::topology
