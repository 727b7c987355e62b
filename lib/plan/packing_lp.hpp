#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hips::plan {

/// A packing program: maximise the sum of x with A x <= c and x >= 0; A and c are not negative.
///
/// All linear programs here are of this kind (shares of the lanes of a hierarchy, weights of trees), and
/// small: a row for each link that may be busiest, a column for each way to go. Columns may be added between
/// solves, which then begin where the last one ended.
///
/// Not by a library: every rank solves the same program and must find the same corner of it to the last bit,
/// on whatever CPU, and a solver with its own threads, signal handlers or exits has no place in a program
/// that loads the interposer. Only + - * / are used, whose results IEEE 754 fixes.
///
/// Cost     memory rows * (columns + rows); a pivot goes over all of it.
/// Threads  none: one object, one thread.
/// Source   Dantzig's simplex method on a dense tableau; Bland's rule where it stalls.
class PackingLp {
 public:
  /// Requires c > 0.
  explicit PackingLp(std::span<const double> c);

  /// Adds a column of A, which has an entry above zero.
  void add_column(std::span<const double> column);

  /// Goes on to the optimum, or until `most_work` entries have been gone over: what then stands is still
  /// feasible. Returns the work that was done.
  std::int64_t solve(std::int64_t most_work);

  [[nodiscard]] std::vector<double> x() const;
  /// Of each row, what one more of c would bring. A column whose entries times these sum up to 1 or more adds
  /// nothing.
  [[nodiscard]] std::vector<double> duals() const;
  [[nodiscard]] double value() const { return value_; }

 private:
  void pivot(std::size_t row, std::size_t column);

  std::size_t rows_;
  std::vector<std::vector<double>> columns_;  ///< the tableau, slacks first
  std::vector<double> gain_;                  ///< reduced cost of each column
  std::vector<double> rest_;                  ///< right-hand sides
  std::vector<std::size_t> basic_;            ///< column that is basic in each row
  double value_ = 0;
};

}  // namespace hips::plan
