// Ranks of a real job push to rows of a table and die one after the other; those that are left hear who it was, and go on with what
// is left of the rows: killed_ranks SEED.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hips/hips.hpp>
#include <hips/ps.hpp>

namespace {

using hips::ps::Key;

constexpr Key kNumKeys = 50;

/// A rank with a counter of its own in each row.
class Pusher {
 public:
  explicit Pusher(std::uint64_t seed)
      : comm_(hips::Communicator::from_environment()),
        rank_(static_cast<std::size_t>(comm_.rank())),
        width_(static_cast<std::size_t>(comm_.size())),
        shape_(seed),
        random_(seed * 1000 + rank_),
        left_(width_),
        table_(comm_, {.num_keys = kNumKeys,
                       .row_length = width_,
                       .staleness = 1,
                       .replicas_per_node = shape_() % 2 == 0 ? kNumKeys : 0}),
        pushes_(kNumKeys) {
    std::iota(left_.begin(), left_.end(), std::size_t{0});
  }

  /// What is wrong; "": nothing. The ranks die but for one.
  std::string run() {
    while (left_.size() > 1) {
      const std::size_t victim = shape_() % left_.size();
      const std::uint64_t calls = shape_() % 60;
      const std::string error = push_until(left_[victim], calls, static_cast<hips::Rank>(victim));
      if (!error.empty()) return error;
      left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(victim));
      comm_ = comm_.shrink();
      if (static_cast<std::size_t>(comm_.size()) != left_.size()) return "another number of ranks is left";
      std::uint64_t num_lost = 0;
      table_ = table_.recover(comm_, &num_lost);
      if (const std::string wrong = compare(num_lost); !wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  /// A rank of the first communicator dies after so many calls of its own.
  std::string push_until(std::size_t victim, std::uint64_t calls, hips::Rank victim_now) {
    try {
      comm_.barrier();
      for (std::uint64_t i = 0;; ++i) {
        if (victim == rank_ && i == calls) (void)raise(SIGKILL);
        const Key key = random_() % kNumKeys;
        if (random_() % 4 == 0) table_.localize(std::span(&key, 1));
        if (random_() % 4 == 0) table_.intent(std::span(&key, 1), clock_, clock_ + 1 + random_() % 3);
        std::vector<std::uint64_t> row(width_);
        row[rank_] = 1;
        uncertain_ = key;
        table_.push(std::span(&key, 1), row);
        uncertain_ = kNumKeys;
        ++pushes_[key];
        if (i % 8 == 7) {
          table_.advance_clock();
          ++clock_;
        }
      }
    } catch (const hips::Error& error) {
      clock_ = 0;
      if (error.status().code == hips::Code::kPeerLost && error.status().rank == victim_now) return "";
      return "rank " + std::to_string(victim) + " died, and the error is: " + error.what();
    }
  }

  /// Own pushes are there, unless the row is lost or stands for a replica's.
  std::string compare(std::uint64_t num_lost) {
    std::vector<Key> keys(kNumKeys);
    std::iota(keys.begin(), keys.end(), Key{0});
    std::vector<std::uint64_t> rows(kNumKeys * width_);
    table_.pull(keys, rows);
    comm_.barrier();
    std::uint64_t lost = 0;
    for (const Key key : keys) {
      const std::span row = std::span(rows).subspan(key * width_, width_);
      const std::uint64_t mine = row[rank_], most = pushes_[key] + (key == uncertain_ ? 1 : 0);
      if (mine > most) return "a row has more pushes than were made";
      if (mine < pushes_[key] && std::ranges::count(row, 0U) == static_cast<std::ptrdiff_t>(width_)) ++lost;
      pushes_[key] = mine;
    }
    uncertain_ = kNumKeys;
    return lost > num_lost ? "more rows are lost than were told" : "";
  }

  hips::Communicator comm_;
  std::size_t rank_, width_;
  std::mt19937_64 shape_;  ///< the same on all ranks
  std::mt19937_64 random_;
  std::vector<std::size_t> left_;  ///< ranks of the first communicator
  hips::ps::Table<std::uint64_t> table_;
  std::vector<std::uint64_t> pushes_;
  Key uncertain_ = kNumKeys;  ///< of a push that has not ended
  std::uint64_t clock_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::invalid_argument("usage: killed_ranks SEED");
    const std::string wrong = Pusher(std::strtoull(argv[1], nullptr, 10)).run();
    if (wrong.empty()) std::printf("this rank is left\n");
    if (!wrong.empty()) std::fprintf(stderr, "killed_ranks: %s\n", wrong.c_str());
    return wrong.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "killed_ranks: %s\n", error.what());
    return 1;
  }
}
