// Factorizes a sparse matrix, entry (i, j) about w[i] * h[j], by stochastic gradient descent on a table of rows.
//
//     HIPS_TOPO=switch:4 HIPS_ROOT=127.0.0.1:29500 mpirun -n 4 matrix_factorization            # rows move to who needs them
//     HIPS_TOPO=switch:4 HIPS_ROOT=127.0.0.1:29500 mpirun -n 4 matrix_factorization --classic  # they stay where they began
//
// Each worker has its own matrix rows, and in each part of an epoch a block of columns that no other worker uses (DSGD,
// Gemulla et al., KDD 2011). So all rows that it pulls and pushes can be local: it brings the block's to its node first.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <hips/hips.hpp>
#include <hips/ps.hpp>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace {

using hips::ps::Key;

constexpr std::uint32_t kRows = 10'000, kColumns = 2'000;
constexpr std::size_t kEntries = 200'000, kRank = 32;
constexpr double kStep = 0.01, kRegularization = 0.05, kNoise = 0.1;

struct Rating {
  std::uint32_t row, column;
  double value;
};

/// A matrix of known factors and noise. The same on all ranks.
std::vector<Rating> generated() {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const double scale = 1 / std::sqrt(std::sqrt(static_cast<double>(kRank)));
  std::vector<double> w(kRows * kRank), h(kColumns * kRank);
  for (double& value : w) value = scale * normal(random);
  for (double& value : h) value = scale * normal(random);
  std::vector<Rating> entries(kEntries);
  for (Rating& entry : entries) {
    entry.row = static_cast<std::uint32_t>(random() % kRows);
    entry.column = static_cast<std::uint32_t>(random() % kColumns);
    entry.value = kNoise * normal(random);
    for (std::size_t k = 0; k < kRank; ++k)
      entry.value += w[entry.row * kRank + k] * h[entry.column * kRank + k];
  }
  return entries;
}

/// One step of gradient descent on an entry; `rows` are w[i] and h[j]. Gives the error before it.
double step(const Rating& entry, std::span<double> rows, std::span<double> changes) {
  double error = entry.value;
  for (std::size_t k = 0; k < kRank; ++k) error -= rows[k] * rows[kRank + k];
  for (std::size_t k = 0; k < kRank; ++k) {
    changes[k] = kStep * (error * rows[kRank + k] - kRegularization * rows[k]);
    changes[kRank + k] = kStep * (error * rows[k] - kRegularization * rows[kRank + k]);
  }
  return error;
}

class Worker {
 public:
  Worker(hips::Communicator& comm, bool localizes)
      : comm_(comm),
        localizes_(localizes),
        num_(static_cast<std::uint32_t>(comm.size())),
        self_(static_cast<std::uint32_t>(comm.rank())),
        table_(comm, {.num_keys = kRows + kColumns, .row_length = kRank}),
        blocks_(num_) {
    for (const Rating& entry : generated())
      if (entry.row % num_ == self_) blocks_[entry.column % num_].push_back(entry);
    std::mt19937_64 random(self_);
    for (auto& block : blocks_) std::shuffle(block.begin(), block.end(), random);
    // Every rank draws all first values and sets those of its rows and columns.
    std::mt19937_64 first(11);
    std::normal_distribution<double> normal(0, 0.3);
    std::vector<Key> own_keys;
    std::vector<double> own_rows;
    for (Key key = 0; key < kRows + kColumns; ++key) {
      std::vector<double> row(kRank);
      for (double& value : row) value = normal(first);
      const Key number = key < kRows ? key : key - kRows;
      if (number % num_ != self_) continue;
      own_keys.push_back(key);
      own_rows.insert(own_rows.end(), row.begin(), row.end());
    }
    table_.set(own_keys, own_rows);
    if (localizes_) {
      std::vector<Key> own;
      for (Key row = self_; row < kRows; row += num_) own.push_back(row);
      table_.localize(own);
    }
    comm_.barrier();
  }

  /// Each entry once. Gives the mean square of the errors on the way, of all workers.
  double epoch() {
    double squares = 0;
    for (std::uint32_t part = 0; part < num_; ++part) {
      const std::uint32_t block = (self_ + part) % num_;
      if (localizes_) {
        std::vector<Key> columns;
        for (Key column = block; column < kColumns; column += num_) columns.push_back(kRows + column);
        table_.localize(columns);
      }
      for (const Rating& entry : blocks_[block]) {
        const Key keys[] = {entry.row, kRows + entry.column};
        table_.pull(keys, rows_);
        const double error = step(entry, rows_, changes_);
        table_.push(keys, changes_);
        squares += error * error;
      }
      // The next worker may have the block.
      comm_.barrier();
    }
    std::vector<double> sum{squares};
    comm_.allreduce(sum, hips::ReduceOp::kSum);
    return sum[0] / static_cast<double>(kEntries);
  }

 private:
  hips::Communicator& comm_;
  bool localizes_;
  std::uint32_t num_, self_;
  hips::ps::Table<double> table_;
  std::vector<std::vector<Rating>> blocks_;  ///< of this worker's matrix rows, by block of columns
  std::vector<double> rows_ = std::vector<double>(2 * kRank), changes_ = std::vector<double>(2 * kRank);
};

}  // namespace

int main(int argc, char** argv) {
  const bool classic = argc > 1 && std::strcmp(argv[1], "--classic") == 0;
  try {
    hips::Communicator comm = hips::Communicator::from_environment();
    Worker worker(comm, !classic);
    for (int epoch = 1; epoch <= (classic ? 1 : 5); ++epoch) {
      const auto begin = std::chrono::steady_clock::now();
      const double loss = worker.epoch();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (comm.rank() == 0)
        std::printf("epoch %d: mean square error %.6f, %.3f s\n", epoch, loss, took.count());
    }
  } catch (const hips::Error& error) {
    std::fprintf(stderr, "matrix_factorization: %s\n", error.what());
    return 1;
  }
}
