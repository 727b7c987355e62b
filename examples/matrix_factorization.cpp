// Factorizes a sparse matrix, entry (i, j) about w[i] * h[j], by stochastic gradient descent on a table of rows.
//
//     HIPS_TOPO=switch:4 HIPS_ROOT=127.0.0.1:29500 mpirun -n 4 matrix_factorization            # rows move to who needs them
//     HIPS_TOPO=switch:4 HIPS_ROOT=127.0.0.1:29500 mpirun -n 4 matrix_factorization --classic  # they stay where they began
//     HIPS_TOPO=switch:4 HIPS_ROOT=127.0.0.1:29500 mpirun -n 4 matrix_factorization --popular  # some columns are popular
//
// Each worker has its own matrix rows, and in each part of an epoch a block of columns that no other worker uses (DSGD,
// Gemulla et al., KDD 2011). So all rows that it pulls and pushes can be local: it brings the block's to its node first.
//
// With --popular columns follow Zipf's law, as items of a shop, and workers take their entries in any order, as where they
// come in one by one. So all want the popular columns all the time: they get replicas, and the others move. For comparison,
// with --popular-moved all columns only move, and with --popular-copied each node has a replica of each all the time.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <hips/hips.hpp>
#include <hips/ps.hpp>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace {

using hips::ps::Key;

constexpr std::uint32_t kRows = 10'000, kColumns = 2'000;
constexpr std::size_t kEntries = 200'000, kRank = 32;
constexpr double kStep = 0.01, kRegularization = 0.05, kNoise = 0.1;
// With popular columns: entries of a clock of a worker, and clocks of which it speaks at once.
constexpr std::size_t kEntriesOfClock = 1000, kClocksOfIntent = 10;

struct Rating {
  std::uint32_t row, column;
  double value;
};

/// Draws columns, with the same probability or by Zipf's law.
class Columns {
 public:
  explicit Columns(bool by_zipf) {
    double sum = 0;
    for (std::uint32_t column = 0; column < kColumns; ++column)
      up_to_.push_back(sum += by_zipf ? 1.0 / (column + 1) : 1.0);
  }
  std::uint32_t draw(std::mt19937_64& random) const {
    const double at = static_cast<double>(random() % kSteps) / kSteps * up_to_.back();
    return static_cast<std::uint32_t>(std::ranges::upper_bound(up_to_, at) - up_to_.begin());
  }

 private:
  static constexpr std::uint64_t kSteps = 1U << 31U;
  std::vector<double> up_to_;
};

/// A matrix of known factors and noise. The same on all ranks.
std::vector<Rating> generated(const Columns& columns) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const double scale = 1 / std::sqrt(std::sqrt(static_cast<double>(kRank)));
  std::vector<double> w(kRows * kRank), h(kColumns * kRank);
  for (double& value : w) value = scale * normal(random);
  for (double& value : h) value = scale * normal(random);
  std::vector<Rating> entries(kEntries);
  for (Rating& entry : entries) {
    entry.row = static_cast<std::uint32_t>(random() % kRows);
    entry.column = columns.draw(random);
    entry.value = kNoise * normal(random);
    for (std::size_t k = 0; k < kRank; ++k)
      entry.value += w[entry.row * kRank + k] * h[entry.column * kRank + k];
  }
  return entries;
}

/// One step of gradient descent on an entry; `rows` are w[i] and h[j]. Gives the error before it.
double step(const Rating& entry, const double* __restrict rows, double* __restrict changes) {
  static_assert(kRank % 4 == 0);
  double sums[4] = {};
  for (std::size_t k = 0; k < kRank; k += 4)
    for (std::size_t i = 0; i < 4; ++i) sums[i] += rows[k + i] * rows[kRank + k + i];
  const double error = entry.value - ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (std::size_t k = 0; k < kRank; ++k) {
    changes[k] = kStep * (error * rows[kRank + k] - kRegularization * rows[k]);
    changes[kRank + k] = kStep * (error * rows[k] - kRegularization * rows[kRank + k]);
  }
  return error;
}

/// The factors as rows of a table: those of matrix rows, then those of columns. Each rank begins with its own of both.
class Factors {
 public:
  Factors(hips::Communicator& comm, hips::ps::TableOptions<double> options)
      : table(comm, (options.num_keys = kRows + kColumns, options.row_length = kRank, options)) {
    const auto num = static_cast<std::uint32_t>(comm.size()), self = static_cast<std::uint32_t>(comm.rank());
    // Every rank draws all first values and sets those of its rows and columns.
    std::mt19937_64 first(11);
    std::normal_distribution<double> normal(0, 0.3);
    std::vector<Key> own_keys;
    std::vector<double> own_rows;
    for (Key key = 0; key < kRows + kColumns; ++key) {
      std::vector<double> row(kRank);
      for (double& value : row) value = normal(first);
      const Key number = key < kRows ? key : key - kRows;
      if (number % num != self) continue;
      own_keys.push_back(key);
      own_rows.insert(own_rows.end(), row.begin(), row.end());
    }
    table.set(own_keys, own_rows);
  }

  /// Brings the factors of a group of matrix rows to this node.
  void localize_rows(std::size_t num_groups, std::size_t group) {
    std::vector<Key> own;
    for (Key row = group; row < kRows; row += num_groups) own.push_back(row);
    table.localize(own);
  }

  /// A step on an entry. Gives the square of the error before it.
  double learn(const Rating& entry) {
    const Key keys[] = {entry.row, kRows + entry.column};
    table.pull(keys, rows_);
    const double error = step(entry, rows_.data(), changes_.data());
    table.push(keys, changes_);
    return error * error;
  }

  hips::ps::Table<double> table;

 private:
  std::vector<double> rows_ = std::vector<double>(2 * kRank), changes_ = std::vector<double>(2 * kRank);
};

class Worker {
 public:
  virtual ~Worker() = default;
  /// Each entry once. Gives sums of the squares of the errors on the way, by group of entries; 0 for groups of other workers.
  virtual std::vector<double> epoch() = 0;
};

/// Uses a block of columns at a time. The order of the steps on a row is the same with one to four workers, and so is the
/// result, to the last bit.
class BlockWorker : public Worker {
 public:
  BlockWorker(hips::Communicator& comm, bool localizes)
      : comm_(comm),
        localizes_(localizes),
        num_(static_cast<std::uint32_t>(comm.size())),
        self_(static_cast<std::uint32_t>(comm.rank())),
        num_groups_(std::max<std::uint32_t>(num_, 4)),
        factors_(comm, {}),
        blocks_(num_groups_, std::vector<std::vector<Rating>>(num_groups_)) {
    for (const Rating& entry : generated(Columns(false))) {
      const std::uint32_t group = entry.row % num_groups_;
      if (group % num_ == self_) blocks_[group][entry.column % num_groups_].push_back(entry);
    }
    for (std::uint32_t group = self_; group < num_groups_; group += num_) {
      std::mt19937_64 random(group);
      for (auto& block : blocks_[group]) {
        std::shuffle(block.begin(), block.end(), random);
        // Entries of a matrix row follow each other, so that its factors stay in the cache (as in LIBMF: Zhuang et al., RecSys 2013).
        std::ranges::stable_sort(block, {}, &Rating::row);
      }
      if (localizes_) factors_.localize_rows(num_groups_, group);
    }
    comm_.barrier();
  }

  std::vector<double> epoch() override {
    std::vector<double> squares(num_groups_);
    for (std::uint32_t part = 0; part < num_groups_; ++part) {
      std::vector<Key> columns;
      for (std::uint32_t group = self_; group < num_groups_; group += num_)
        for (Key column = block_of(group, part); column < kColumns; column += num_groups_)
          columns.push_back(kRows + column);
      if (localizes_) factors_.table.localize(columns);
      for (std::uint32_t group = self_; group < num_groups_; group += num_)
        for (const Rating& entry : blocks_[group][block_of(group, part)])
          squares[group] += factors_.learn(entry);
      // The next worker may have the block.
      comm_.barrier();
    }
    return squares;
  }

 private:
  [[nodiscard]] std::uint32_t block_of(std::uint32_t group, std::uint32_t part) const {
    return (group + part) % num_groups_;
  }

  hips::Communicator& comm_;
  bool localizes_;
  std::uint32_t num_, self_, num_groups_;  ///< groups of matrix rows, and as many blocks of columns
  Factors factors_;
  std::vector<std::vector<std::vector<Rating>>> blocks_;  ///< by group and block; empty: of other workers
};

/// What becomes of columns that several workers want.
enum class Popular { kReplicated, kMoved, kCopied };

/// Takes its entries in any order.
class PopularWorker : public Worker {
 public:
  PopularWorker(hips::Communicator& comm, Popular popular)
      : popular_(popular),
        num_(static_cast<std::size_t>(comm.size())),
        self_(static_cast<std::size_t>(comm.rank())),
        factors_(comm, {.staleness = 1, .replicas_per_node = popular == Popular::kMoved ? 0 : kColumns}) {
    for (const Rating& entry : generated(Columns(true)))
      if (entry.row % num_ == self_) entries_.push_back(entry);
    std::mt19937_64 random(self_);
    std::shuffle(entries_.begin(), entries_.end(), random);
    // An epoch has as many clocks on each rank.
    num_clocks_ =
        std::max<std::size_t>(1, kEntries / num_ / kEntriesOfClock / kClocksOfIntent) * kClocksOfIntent;
    for (std::size_t clock = 0; clock < num_clocks_; clock += clocks_at_once()) {
      std::set<Key> used;
      for (const Rating& entry : of_clocks(clock, clock + clocks_at_once()))
        used.insert(kRows + entry.column);
      columns_.emplace_back(used.begin(), used.end());
    }
    factors_.localize_rows(num_, self_);
    comm.barrier();
    if (popular_ == Popular::kCopied) {
      std::vector<Key> all(kColumns);
      std::iota(all.begin(), all.end(), kRows);
      factors_.table.intent(all, 0, ~std::uint64_t{0});
    }
    for (std::size_t clock = 0; clock < kAhead; ++clock) announce(clock);
  }

  std::vector<double> epoch() override {
    std::vector<double> squares(num_);
    for (std::size_t clock = 0; clock < num_clocks_; ++clock) {
      announce(num_ended_ + kAhead);
      for (const Rating& entry : of_clocks(clock, clock + 1)) squares[self_] += factors_.learn(entry);
      factors_.table.advance_clock();
      ++num_ended_;
    }
    hips::wait_all(coming_);
    coming_.clear();
    return squares;
  }

 private:
  /// How many clocks before their use a worker speaks of columns.
  static constexpr std::size_t kAhead = 2;

  /// Columns that move are brought for each clock: those that come sooner have left again.
  [[nodiscard]] std::size_t clocks_at_once() const {
    return popular_ == Popular::kMoved ? 1 : kClocksOfIntent;
  }

  /// Entries of clocks of an epoch.
  [[nodiscard]] std::span<const Rating> of_clocks(std::size_t first, std::size_t last) const {
    const std::size_t begin = entries_.size() * first / num_clocks_,
                      end = entries_.size() * last / num_clocks_;
    return std::span(entries_).subspan(begin, end - begin);
  }

  /// Says, before the first of some clocks, which columns they use.
  void announce(std::size_t clock) {
    if (clock % clocks_at_once() != 0) return;
    const std::vector<Key>& columns = columns_[clock / clocks_at_once() % columns_.size()];
    if (popular_ == Popular::kReplicated) factors_.table.intent(columns, clock, clock + clocks_at_once());
    if (popular_ == Popular::kMoved) coming_.push_back(factors_.table.ilocalize(columns));
  }

  Popular popular_;
  std::size_t num_, self_;
  Factors factors_;
  std::vector<Rating> entries_;  ///< of this worker's matrix rows
  std::size_t num_clocks_ = 0;   ///< of an epoch
  std::size_t num_ended_ = 0;
  std::vector<std::vector<Key>> columns_;  ///< of an epoch
  std::vector<hips::Request> coming_;      ///< columns that move
};

std::unique_ptr<Worker> made_worker(hips::Communicator& comm, const std::string& way) {
  if (way == "--popular") return std::make_unique<PopularWorker>(comm, Popular::kReplicated);
  if (way == "--popular-moved") return std::make_unique<PopularWorker>(comm, Popular::kMoved);
  if (way == "--popular-copied") return std::make_unique<PopularWorker>(comm, Popular::kCopied);
  if (way.empty() || way == "--classic") return std::make_unique<BlockWorker>(comm, way.empty());
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  try {
    hips::Communicator comm = hips::Communicator::from_environment();
    const auto worker = made_worker(comm, way);
    if (!worker) {
      std::fprintf(stderr,
                   "matrix_factorization: %s: expected nothing, --classic, --popular, --popular-moved or "
                   "--popular-copied\n",
                   way.c_str());
      return 2;
    }
    for (int epoch = 1; epoch <= (way == "--classic" ? 1 : 5); ++epoch) {
      const auto begin = std::chrono::steady_clock::now();
      std::vector<double> squares = worker->epoch();
      comm.allreduce(squares, hips::ReduceOp::kSum);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (comm.rank() == 0)
        std::printf("epoch %d: mean square error %.15g, %.3f s\n", epoch,
                    std::accumulate(squares.begin(), squares.end(), 0.0) / static_cast<double>(kEntries),
                    took.count());
    }
  } catch (const hips::Error& error) {
    std::fprintf(stderr, "matrix_factorization: %s\n", error.what());
    return 1;
  }
}
