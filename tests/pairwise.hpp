#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

// Rows of a test matrix that has too many: most faults need no more than two values to meet, so it is enough
// that all pairs do.
namespace hips::test {

/// A value for each axis, as an index; kOpen where none has been chosen.
using MatrixRow = std::vector<int>;
inline constexpr int kOpen = -1;

/// May a test have these values? Asked of rows with open axes, too: false if no choice for those would do.
using Allowed = std::function<bool(const MatrixRow&)>;

/// Rows in which any two values of two axes stand together at least once, where an allowed row has both.
///
/// Shapes   sizes: values of each axis.
/// Cost     about the product of the two longest axes rows, and half as many again.
/// Order    drawn from `random`: the same for the same generator.
/// Source   the greedy choice of AETG: Cohen, Dalal, Fredman and Patton 1997, doi:10.1109/32.605761.
class Pairwise {
 public:
  Pairwise(std::vector<int> sizes, Allowed allowed, std::mt19937_64& random)
      : sizes_(std::move(sizes)), allowed_(std::move(allowed)), random_(random) {}

  std::vector<MatrixRow> rows() {
    find_open_pairs();
    std::vector<MatrixRow> rows;
    while (!open_.empty()) {
      const Pair pair = *open_.begin();
      MatrixRow row(sizes_.size(), kOpen);
      row[pair.first.axis] = pair.first.value;
      row[pair.second.axis] = pair.second.value;
      if (!allowed_(row) || !complete(row)) {
        open_.erase(pair);  // never together
        continue;
      }
      for (const Pair& covered : pairs_of(row)) open_.erase(covered);
      rows.push_back(std::move(row));
    }
    std::ranges::shuffle(rows, random_);
    return rows;
  }

 private:
  struct Choice {
    std::size_t axis;
    int value;
    friend auto operator<=>(const Choice&, const Choice&) = default;
  };
  using Pair = std::pair<Choice, Choice>;  ///< of the lower axis first

  void find_open_pairs() {
    for (std::size_t a = 0; a < sizes_.size(); ++a)
      for (std::size_t b = a + 1; b < sizes_.size(); ++b)
        for (int x = 0; x < sizes_[a]; ++x)
          for (int y = 0; y < sizes_[b]; ++y) open_.insert({{a, x}, {b, y}});
  }

  [[nodiscard]] static std::vector<Pair> pairs_of(const MatrixRow& row) {
    std::vector<Pair> pairs;
    for (std::size_t a = 0; a < row.size(); ++a)
      for (std::size_t b = a + 1; b < row.size(); ++b) pairs.push_back({{a, row[a]}, {b, row[b]}});
    return pairs;
  }

  /// Open pairs that the choice would close beside those made.
  [[nodiscard]] std::size_t gain(const MatrixRow& row, Choice choice) const {
    std::size_t closed = 0;
    for (std::size_t axis = 0; axis < row.size(); ++axis) {
      if (row[axis] == kOpen || axis == choice.axis) continue;
      const Choice other{axis, row[axis]};
      closed += open_.contains(axis < choice.axis ? Pair{other, choice} : Pair{choice, other});
    }
    return closed;
  }

  /// Chooses values for the open axes, those first that close most pairs; takes back what leads nowhere.
  bool complete(MatrixRow& row) {
    std::vector<std::size_t> axes;
    for (std::size_t axis = 0; axis < row.size(); ++axis)
      if (row[axis] == kOpen) axes.push_back(axis);
    std::ranges::shuffle(axes, random_);
    return complete(row, axes);
  }
  bool complete(MatrixRow& row, std::span<const std::size_t> axes) {
    if (axes.empty()) return true;
    const std::size_t axis = axes.front();
    std::vector<int> values(static_cast<std::size_t>(sizes_[axis]));
    std::iota(values.begin(), values.end(), 0);
    std::ranges::shuffle(values, random_);
    std::ranges::stable_sort(values, std::greater{}, [&](int value) { return gain(row, {axis, value}); });
    for (const int value : values) {
      row[axis] = value;
      if (allowed_(row) && complete(row, axes.subspan(1))) return true;
    }
    row[axis] = kOpen;
    return false;
  }

  std::vector<int> sizes_;
  Allowed allowed_;
  std::mt19937_64& random_;
  std::set<Pair> open_;
};

/// All rows that are allowed.
inline std::vector<MatrixRow> all_rows(const std::vector<int>& sizes, const Allowed& allowed) {
  std::vector<MatrixRow> rows;
  MatrixRow row(sizes.size(), kOpen);
  const std::function<void(std::size_t)> choose = [&](std::size_t axis) {
    if (axis == sizes.size()) return rows.push_back(row);
    for (row[axis] = 0; row[axis] < sizes[axis]; ++row[axis])
      if (allowed(row)) choose(axis + 1);
    row[axis] = kOpen;
  };
  choose(0);
  return rows;
}

}  // namespace hips::test
