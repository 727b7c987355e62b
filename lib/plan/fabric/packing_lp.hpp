#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hips::plan {

/// Why a linear program stopped.
enum class LpEnd : std::uint8_t {
  kOptimal,
  kOutOfWork,  ///< the limit of work was reached: x() is feasible, but may not be optimal
  kLost,       ///< rounding has lost all entries of a column: x() is feasible, but may not be optimal
};

/// A packing program: maximise the sum of x with A x <= c and x >= 0; A and c are not negative.
///
/// All linear programs of this library are of this kind (shares of the lanes of a hierarchy, weights of
/// trees), and small: a row for each link that may be the busiest, a column for each lane order or tree.
/// Columns may be added between solves; the next solve begins where the last one ended.
///
/// This is no general solver from a library, because every rank solves the same program and must find the
/// same corner of it to the last bit, on any CPU, and because a solver with its own threads, signal handlers
/// or exits has no place in a program that loads the interposer. It uses + - * / only, whose results IEEE 754
/// fixes.
///
/// Cost     memory rows * (columns + rows); a pivot goes over all of it.
/// Threads  none: one object, one thread.
/// Source   Dantzig's simplex method on a dense tableau; Bland's rule where it stalls.
class PackingLp {
 public:
  /// Requires c > 0.
  explicit PackingLp(std::span<const double> c);

  /// Adds a column of A, which must have an entry above zero.
  void add_column(std::span<const double> column);

  /// Continues towards the optimum until it has touched at least `most_work` entries of the tableau.
  [[nodiscard]] LpEnd solve(std::int64_t most_work);
  /// Entries that all solves so far have touched.
  [[nodiscard]] std::int64_t work() const { return work_; }

  [[nodiscard]] std::vector<double> x() const;
  /// For each row, the gain in value per unit of c. A column whose entries times these sum to 1 or more
  /// cannot increase the value.
  [[nodiscard]] std::vector<double> duals() const;
  [[nodiscard]] double value() const { return value_; }

 private:
  [[nodiscard]] std::size_t entering_column() const;
  [[nodiscard]] std::size_t leaving_row(std::size_t column) const;
  void pivot(std::size_t row, std::size_t column);

  std::size_t rows_;
  std::vector<std::vector<double>> columns_;  ///< the tableau, slacks first
  std::vector<double> gain_;                  ///< reduced cost of each column
  std::vector<double> rest_;                  ///< right-hand sides
  std::vector<std::size_t> basic_;            ///< column that is basic in each row
  double value_ = 0;
  std::int32_t stalled_ = 0;  ///< pivots since the value last grew
  std::int64_t work_ = 0;
};

}  // namespace hips::plan
