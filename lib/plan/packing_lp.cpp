#include "lib/plan/packing_lp.hpp"

namespace hips::plan {
namespace {

// Entries are counts of links over rates of about 1: what is smaller than this has come from rounding.
constexpr double kNothing = 1e-9;

}  // namespace

PackingLp::PackingLp(std::span<const double> c)
    : rows_(c.size()), gain_(c.size(), 0.0), rest_(c.begin(), c.end()) {
  for (std::size_t row = 0; row < rows_; ++row) {
    std::vector<double> slack(rows_, 0.0);
    slack[row] = 1;
    columns_.push_back(std::move(slack));
    basic_.push_back(row);
  }
}

void PackingLp::add_column(std::span<const double> column) {
  // The slacks' columns hold the inverse of the basis: what the pivots so far have made of a unit column.
  std::vector<double> now(rows_, 0.0);
  double gain = 1;
  for (std::size_t i = 0; i < rows_; ++i) {
    if (column[i] == 0) continue;
    for (std::size_t row = 0; row < rows_; ++row) now[row] += columns_[i][row] * column[i];
    gain += gain_[i] * column[i];
  }
  columns_.push_back(std::move(now));
  gain_.push_back(gain);
}

void PackingLp::pivot(std::size_t row, std::size_t column) {
  const std::vector<double> entering = columns_[column];
  const double by = entering[row];
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::vector<double>& each = columns_[c];
    if (each[row] == 0) continue;
    const double share = each[row] / by;
    for (std::size_t r = 0; r < rows_; ++r) {
      if (r != row && entering[r] != 0) each[r] -= entering[r] * share;
    }
    each[row] = share;
    if (c != column) gain_[c] -= gain_[column] * share;
  }
  const double step = rest_[row] / by;
  for (std::size_t r = 0; r < rows_; ++r) {
    if (r == row) continue;
    rest_[r] -= entering[r] * step;
    if (rest_[r] < 0) rest_[r] = 0;
  }
  rest_[row] = step;
  value_ += gain_[column] * step;
  gain_[column] = 0;
  basic_[row] = column;
}

std::int64_t PackingLp::solve(std::int64_t most_work) {
  int stalled = 0;
  const auto work_of_pivot = static_cast<std::int64_t>(rows_ * columns_.size());
  std::int64_t work = 0;
  for (; work < most_work; work += work_of_pivot) {
    std::size_t column = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (gain_[c] <= kNothing || (column != columns_.size() && gain_[c] <= gain_[column])) continue;
      column = c;
      // The first column that gains, not the best, cannot go round in a circle.
      if (stalled > 32) break;
    }
    if (column == columns_.size()) return work;
    std::size_t row = rows_;
    for (std::size_t r = 0; r < rows_; ++r) {
      const double entry = columns_[column][r];
      if (entry <= kNothing) continue;
      if (row == rows_) {
        row = r;
        continue;
      }
      const double here = rest_[r] * columns_[column][row], best = rest_[row] * entry;
      if (here < best || (here == best && basic_[r] < basic_[row])) row = r;
    }
    if (row == rows_) return work;
    const double before = value_;
    pivot(row, column);
    stalled = value_ > before ? 0 : stalled + 1;
  }
  return work;
}

std::vector<double> PackingLp::x() const {
  std::vector<double> x(columns_.size() - rows_, 0.0);
  for (std::size_t row = 0; row < rows_; ++row) {
    if (basic_[row] >= rows_) x[basic_[row] - rows_] = rest_[row];
  }
  return x;
}

std::vector<double> PackingLp::duals() const {
  std::vector<double> duals;
  for (std::size_t row = 0; row < rows_; ++row) duals.push_back(gain_[row] < 0 ? -gain_[row] : 0.0);
  return duals;
}

}  // namespace hips::plan
