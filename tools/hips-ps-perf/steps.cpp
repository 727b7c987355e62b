#include "tools/hips-ps-perf/steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <hips/ps.hpp>

namespace hips::ps_perf {
namespace {

using ps::Key;

constexpr std::uint64_t kStaleness = 1;
constexpr std::size_t kMostAhead = 2;

enum class Way { kRemote, kLocalized, kIntents, kReplicas };
constexpr const char* kWayNames[] = {"unmoved", "localized", "intents", "replicas"};

/// Keys of each step, without repetition; the same for each seed.
std::vector<std::vector<Key>> keys_of_steps(const PsPerfOptions& options, std::size_t num_steps,
                                            std::uint64_t seed) {
  std::vector<double> up_to(options.num_keys);
  double sum = 0;
  for (std::size_t i = 0; i < up_to.size(); ++i)
    up_to[i] = sum += std::pow(static_cast<double>(i) + 1, -options.zipf);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<> below(0, sum);
  std::vector<std::vector<Key>> steps(num_steps);
  for (std::vector<Key>& keys : steps) {
    std::unordered_set<Key> drawn;
    while (drawn.size() < options.keys_per_call)
      // A random number may be rounded up to the sum.
      drawn.insert(
          std::min<Key>(options.num_keys - 1,
                        static_cast<Key>(std::ranges::lower_bound(up_to, below(random)) - up_to.begin())));
    keys.assign(drawn.begin(), drawn.end());
  }
  return steps;
}

/// A rank's steps on a table. Every element of a row counts the pushes to it.
class Steps {
 public:
  Steps(Communicator& comm, const PsPerfOptions& options, Way way, std::size_t row_length)
      : comm_(comm),
        options_(options),
        way_(way),
        num_steps_(std::max<std::size_t>(50, static_cast<std::size_t>(options.iterations) / 10)),
        keys_(keys_of_steps(options, num_steps_ + kMostAhead, static_cast<std::uint64_t>(comm.rank()) + 1)),
        table_(comm, {.num_keys = options.num_keys,
                      .row_length = row_length,
                      .staleness = kStaleness,
                      .replicas_per_node = way == Way::kReplicas ? options.num_keys : 0}),
        rows_(options.keys_per_call * row_length),
        ones_(rows_.size(), 1),
        coming_(num_steps_ + kMostAhead) {}

  /// Microseconds of a step; the first fifth warms up.
  double run() {
    for (std::size_t step = 0; step < ahead(); ++step) announce(step);
    Clock::time_point begin;
    const std::size_t first = num_steps_ / 5;
    for (std::size_t step = 0; step < num_steps_; ++step) {
      if (step == first) {
        comm_.barrier();
        begin = Clock::now();
      }
      announce(step + ahead());
      coming_[step].wait();
      table_.pull(keys_[step], rows_);
      table_.push(keys_[step], ones_);
      table_.advance_clock();
    }
    wait_all(coming_);
    comm_.barrier();
    return us_since(begin) / static_cast<double>(num_steps_ - first);
  }

  /// The table has what all ranks have pushed. Collective.
  void check() {
    std::vector<double> wanted(options_.num_keys);
    for (std::size_t step = 0; step < num_steps_; ++step)
      for (const Key key : keys_[step]) ++wanted[key];
    comm_.allreduce(wanted, ReduceOp::kSum);
    // Then no clock is missing anywhere.
    for (std::uint64_t i = 0; i <= kStaleness; ++i) table_.advance_clock();
    for (const std::vector<Key>& keys : keys_) {
      table_.pull(keys, rows_);
      for (std::size_t i = 0; i < keys.size(); ++i)
        if (static_cast<double>(rows_[i * table_.row_length()]) != wanted[keys[i]])
          throw Error(Status::error(
              Code::kInternal, fmt::format("hips-ps-perf: key {} has {} pushes where {} were made", keys[i],
                                           rows_[i * table_.row_length()], wanted[keys[i]])));
    }
    comm_.barrier();
  }

 private:
  /// How many steps before their use a rank speaks of keys. What is localized sooner has left again.
  [[nodiscard]] std::size_t ahead() const { return way_ == Way::kLocalized ? 1 : kMostAhead; }

  void announce(std::size_t step) {
    if (way_ == Way::kLocalized) coming_[step] = table_.ilocalize(keys_[step]);
    if (way_ == Way::kIntents || way_ == Way::kReplicas) table_.intent(keys_[step], step, step + 1);
  }

  Communicator& comm_;
  const PsPerfOptions& options_;
  Way way_;
  std::size_t num_steps_;
  std::vector<std::vector<Key>> keys_;
  ps::Table<float> table_;
  std::vector<float> rows_, ones_;
  std::vector<Request> coming_;
};

}  // namespace

void measure_steps(Communicator& comm, const PsPerfOptions& options, Measurements& lines) {
  for (const std::size_t length : options.row_lengths) {
    for (const Way way : {Way::kRemote, Way::kLocalized, Way::kIntents, Way::kReplicas}) {
      Steps steps(comm, options, way, length);
      const double us = steps.run();
      steps.check();
      lines.add({"step", kWayNames[static_cast<int>(way)], options.keys_per_call, length, 1}, us,
                1e6 * static_cast<double>(options.keys_per_call) * comm.size() / us);
    }
  }
}

}  // namespace hips::ps_perf
