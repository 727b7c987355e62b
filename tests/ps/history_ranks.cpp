// Ranks of a real job access random rows of tables, and decide over what all of them saw: history_ranks SEED RUNS. Every other table
// has replicas.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hips/hips.hpp>
#include <hips/ps.hpp>

#include "tests/ps/history.hpp"

namespace {

using hips::ps::Key;
using hips::ps::test::History;

/// Of one machine, so the same for all ranks, namespaces included. Begins are even and ends odd: where the clock stands still
/// nothing is said to have ended before it.
std::uint64_t now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return 2 * static_cast<std::uint64_t>(std::chrono::nanoseconds(since).count());
}

/// The calls of one rank on a table of counters, one for each rank.
class RandomCalls {
 public:
  RandomCalls(hips::Communicator& comm, std::uint64_t seed)
      : comm_(comm),
        shape_(seed),
        num_keys_(1 + shape_() % 6),
        most_outstanding_(shape_() % 2 == 0 ? 1 : 1 + shape_() % 8),
        moves_(static_cast<double>(shape_() % 5) / 10),
        random_(seed * 1000 + static_cast<std::uint64_t>(comm.rank())),
        width_(static_cast<std::size_t>(comm.size())),
        table_(comm, {.num_keys = num_keys_, .row_length = width_, .staleness = kNumCalls}) {}

  std::vector<History::Access> run() {
    comm_.barrier();
    for (std::uint64_t i = 0; i < kNumCalls; ++i) {
      if (outstanding_.size() >= most_outstanding_) finish_first();
      start();
      if (moves_ == 0) continue;
      // Intents are hints: right or wrong, they change nothing.
      if (random_() % 8 == 0) {
        const std::uint64_t start = clock_ + random_() % 3;
        table_.intent(keys_, start, start + 1 + random_() % 4);
      }
      if (random_() % 8 == 0) {
        table_.advance_clock();
        ++clock_;
      }
    }
    while (!outstanding_.empty()) finish_first();
    comm_.barrier();
    // What is left is read by all, from wherever it is.
    for (Key key = 0; key < num_keys_; ++key) {
      keys_ = {key};
      begin(Kind::kPull);
      finish_first();
    }
    comm_.barrier();
    return std::move(accesses_);
  }

 private:
  static constexpr std::uint64_t kNumCalls = 60;
  enum class Kind { kPull, kPush, kLocalize };
  struct Outstanding {
    Kind kind;
    std::vector<Key> keys;
    std::vector<std::uint64_t> rows, own_before;
    std::uint64_t begin = 0;
    hips::Request request;  // ends before the rows
  };

  void start() {
    keys_.clear();
    for (Key key = 0; key < num_keys_; ++key)
      if (random_() % 2 == 0) keys_.push_back(key);
    std::shuffle(keys_.begin(), keys_.end(), random_);
    if (keys_.empty()) keys_.push_back(random_() % num_keys_);
    const bool moves = std::uniform_real_distribution<>(0, 1)(random_) < moves_;
    begin(moves ? Kind::kLocalize : random_() % 2 == 0 ? Kind::kPush : Kind::kPull);
  }

  void begin(Kind kind) {
    Outstanding& call = outstanding_.emplace_back();
    call.kind = kind;
    call.keys = keys_;
    call.rows.assign(keys_.size() * width_, 0);
    for (const Key key : keys_) {
      call.own_before.push_back(pushes_[key]);
      if (kind == Kind::kPush) ++pushes_[key];
    }
    for (std::size_t i = 0; kind == Kind::kPush && i < keys_.size(); ++i)
      call.rows[i * width_ + static_cast<std::size_t>(comm_.rank())] = 1;
    call.begin = now();
    call.request = kind == Kind::kLocalize ? table_.ilocalize(call.keys)
                   : kind == Kind::kPush   ? table_.ipush(call.keys, call.rows)
                                           : table_.ipull(call.keys, call.rows);
  }

  void finish_first() {
    Outstanding& call = outstanding_.front();
    call.request.wait();
    const std::uint64_t end = now() + 1;
    for (std::size_t i = 0; call.kind != Kind::kLocalize && i < call.keys.size(); ++i) {
      History::Access access{.worker = static_cast<std::size_t>(comm_.rank()),
                             .key = call.keys[i],
                             .begin = call.begin,
                             .end = end,
                             .is_push = call.kind == Kind::kPush,
                             .own_before = call.own_before[i]};
      const auto row = call.rows.begin() + static_cast<std::ptrdiff_t>(i * width_);
      if (call.kind == Kind::kPull) access.row.assign(row, row + static_cast<std::ptrdiff_t>(width_));
      accesses_.push_back(std::move(access));
    }
    outstanding_.pop_front();
  }

  hips::Communicator& comm_;
  std::mt19937_64 shape_;  ///< the same on all ranks
  Key num_keys_;
  std::size_t most_outstanding_;
  double moves_;
  std::mt19937_64 random_;
  std::size_t width_;
  hips::ps::Table<std::uint64_t> table_;
  std::uint64_t clock_ = 0;
  std::vector<Key> keys_;
  std::map<Key, std::uint64_t> pushes_;
  std::deque<Outstanding> outstanding_;
  std::vector<History::Access> accesses_;
};

/// All ranks' accesses, and the final rows: pushes of all ranks and no others.
std::optional<std::string> broken_guarantee(hips::Communicator& comm,
                                            const std::vector<History::Access>& own) {
  const auto width = static_cast<std::size_t>(comm.size());
  std::vector<std::uint64_t> numbers;
  for (const History::Access& access : own) {
    numbers.insert(numbers.end(),
                   {access.key, access.begin, access.end, access.is_push ? 1U : 0U, access.own_before});
    std::vector<std::uint64_t> row = access.row;
    row.resize(width);
    numbers.insert(numbers.end(), row.begin(), row.end());
  }
  const std::vector<std::uint64_t> size{numbers.size()};
  std::vector<std::uint64_t> sizes(width);
  comm.allgather(size, sizes);
  const std::size_t most = *std::ranges::max_element(sizes), fields = 5 + width;
  numbers.resize(most);
  std::vector<std::uint64_t> all(most * width);
  comm.allgather(numbers, all);
  History history(width);
  for (std::size_t worker = 0; worker < width; ++worker) {
    for (std::size_t at = worker * most; at < worker * most + sizes[worker]; at += fields) {
      History::Access access{.worker = worker,
                             .key = all[at],
                             .begin = all[at + 1],
                             .end = all[at + 2],
                             .is_push = all[at + 3] == 1,
                             .own_before = all[at + 4]};
      if (!access.is_push)
        access.row.assign(all.begin() + static_cast<std::ptrdiff_t>(at + 5),
                          all.begin() + static_cast<std::ptrdiff_t>(at + fields));
      history.add(std::move(access));
    }
  }
  return history.broken();
}

/// Clocks of one rank on a table of counters with replicas: own pushes are seen at once, those of others as the staleness promises, and
/// a read never goes back.
class RandomClocks {
 public:
  RandomClocks(hips::Communicator& comm, std::uint64_t seed)
      : comm_(comm),
        shape_(seed),
        num_keys_(1 + shape_() % 6),
        staleness_(shape_() % 3),
        random_(seed * 1000 + static_cast<std::uint64_t>(comm.rank())),
        rank_(static_cast<std::size_t>(comm.rank())),
        width_(static_cast<std::size_t>(comm.size())),
        table_(comm, {.num_keys = num_keys_,
                      .row_length = width_,
                      .staleness = staleness_,
                      .replicas_per_node = num_keys_}),
        pushes_(num_keys_),
        seen_(num_keys_, std::vector<std::uint64_t>(width_)) {}

  /// What is broken on any rank; the same on all.
  std::optional<std::string> broken() {
    for (std::uint64_t clock = 0; clock < kNumClocks; ++clock) {
      ended_.insert(ended_.end(), pushes_.begin(), pushes_.end());
      if (random_() % 4 != 0) {
        const std::uint64_t start = clock + random_() % 3;
        table_.intent(some_keys(), start, start + 1 + random_() % 4);
      }
      for (auto calls = random_() % 5; calls > 0; --calls) call(clock);
      table_.advance_clock();
    }
    // Then no rank's clock is missing in any replica.
    for (std::uint64_t i = 0; i <= staleness_; ++i) table_.advance_clock();
    std::vector<std::uint64_t> all_ended(width_ * ended_.size()), all_pushes(width_ * num_keys_);
    comm_.allgather(ended_, all_ended);
    comm_.allgather(pushes_, all_pushes);
    for (const Read& read : reads_) {
      if (read.clock < staleness_) continue;
      for (std::size_t other = 0; other < width_; ++other) {
        const std::uint64_t promised =
            all_ended[other * ended_.size() + (read.clock - staleness_) * num_keys_ + read.key];
        if (read.row[other] < promised) wrong_ = "a pull misses pushes of a clock that had ended";
        if (read.row[other] > all_pushes[other * num_keys_ + read.key]) wrong_ = "a push is there twice";
      }
    }
    for (Key key = 0; key < num_keys_; ++key) {
      const auto row = pulled(key);
      for (std::size_t other = 0; other < width_; ++other)
        if (row[other] != all_pushes[other * num_keys_ + key]) wrong_ = "a push is lost or doubled";
    }
    std::int32_t num_wrong = wrong_.empty() ? 0 : 1;
    comm_.allreduce(std::span(&num_wrong, 1), hips::ReduceOp::kSum);
    if (num_wrong == 0) return std::nullopt;
    return wrong_.empty() ? "another rank is wrong" : wrong_;
  }

 private:
  static constexpr std::uint64_t kNumClocks = 12;
  struct Read {
    std::uint64_t clock;
    Key key;
    std::vector<std::uint64_t> row;
  };

  std::vector<Key> some_keys() {
    std::vector<Key> keys;
    for (Key key = 0; key < num_keys_; ++key)
      if (random_() % 2 == 0) keys.push_back(key);
    return keys;
  }
  std::vector<std::uint64_t> pulled(Key key) {
    std::vector<std::uint64_t> row(width_);
    table_.pull(std::span(&key, 1), row);
    return row;
  }

  void call(std::uint64_t clock) {
    const Key key = random_() % num_keys_;
    switch (random_() % 8) {
      case 0:
        table_.localize(std::span(&key, 1));
        break;
      case 1:
      case 2:
      case 3: {
        std::vector<std::uint64_t> row(width_);
        row[rank_] = 1;
        table_.push(std::span(&key, 1), row);
        ++pushes_[key];
        break;
      }
      default: {
        auto row = pulled(key);
        if (row[rank_] != pushes_[key]) wrong_ = "a rank does not see its own pushes";
        for (std::size_t other = 0; other < width_; ++other)
          if (row[other] < seen_[key][other]) wrong_ = "a read goes back";
        seen_[key] = row;
        reads_.push_back({clock, key, std::move(row)});
      }
    }
  }

  hips::Communicator& comm_;
  std::mt19937_64 shape_;  ///< the same on all ranks
  Key num_keys_;
  std::uint64_t staleness_;
  std::mt19937_64 random_;
  std::size_t rank_, width_;
  hips::ps::Table<std::uint64_t> table_;
  std::vector<std::uint64_t> pushes_, ended_;     ///< by key; by clock and key: pushes when the clock began
  std::vector<std::vector<std::uint64_t>> seen_;  ///< by key: the last row read
  std::vector<Read> reads_;
  std::string wrong_;
};

int run(std::uint64_t seed, std::uint64_t runs) {
  hips::Communicator comm = hips::Communicator::from_environment();
  for (std::uint64_t i = 0; i < runs; ++i) {
    const auto broken = i % 2 == 1 ? RandomClocks(comm, seed + i).broken()
                                   : broken_guarantee(comm, RandomCalls(comm, seed + i).run());
    if (!broken) continue;
    std::fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(seed + i), broken->c_str());
    return 1;
  }
  if (comm.rank() == 0) std::printf("%llu runs kept the guarantees\n", static_cast<unsigned long long>(runs));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::invalid_argument("usage: history_ranks SEED RUNS");
    return run(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "history_ranks: %s\n", error.what());
    return 1;
  }
}
