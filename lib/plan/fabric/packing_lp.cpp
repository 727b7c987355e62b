#include "lib/plan/fabric/packing_lp.hpp"

namespace hips::plan {
namespace {

// Entries are counts of links over rates of about 1: smaller values come from rounding.
constexpr double kNothing = 1e-9;
// Pivots without progress after which Bland's rule is used.
constexpr std::int32_t kMostStalls = 32;

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
  // The slacks' columns hold the inverse of the basis: unit columns after the pivots so far.
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

/// The column to bring into the basis; columns_.size() at the optimum.
std::size_t PackingLp::entering_column() const {
  std::size_t best = columns_.size();
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    if (gain_[column] <= kNothing || (best != columns_.size() && gain_[column] <= gain_[best])) continue;
    best = column;
    // Taking the first column that gains, instead of the best, cannot cycle.
    if (stalled_ > kMostStalls) break;
  }
  return best;
}

/// The row that limits a column most, of equal ones that of the first basic column; rows_ if none does.
std::size_t PackingLp::leaving_row(std::size_t column) const {
  std::size_t best = rows_;
  for (std::size_t row = 0; row < rows_; ++row) {
    const double entry = columns_[column][row];
    if (entry <= kNothing) continue;
    if (best == rows_) {
      best = row;
      continue;
    }
    const double limit = rest_[row] * columns_[column][best], least = rest_[best] * entry;
    if (limit < least || (limit == least && basic_[row] < basic_[best])) best = row;
  }
  return best;
}

LpEnd PackingLp::solve(std::int64_t most_work) {
  stalled_ = 0;
  const auto work_of_pivot = static_cast<std::int64_t>(rows_ * columns_.size());
  for (std::int64_t work = 0;; work += work_of_pivot, work_ += work_of_pivot) {
    const std::size_t column = entering_column();
    if (column == columns_.size()) return LpEnd::kOptimal;
    if (work >= most_work) return LpEnd::kOutOfWork;
    const std::size_t row = leaving_row(column);
    if (row == rows_) return LpEnd::kLost;
    const double before = value_;
    pivot(row, column);
    stalled_ = value_ > before ? 0 : stalled_ + 1;
  }
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
