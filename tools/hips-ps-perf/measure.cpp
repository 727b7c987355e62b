#include "tools/hips-ps-perf/measure.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <hips/ps.hpp>

#include "tools/hips-ps-perf/measurements.hpp"
#include "tools/hips-ps-perf/ping_pong.hpp"
#include "tools/hips-ps-perf/steps.hpp"
#include "tools/hips-ps-perf/updates.hpp"

namespace hips::ps_perf {
namespace {

using ps::Key;

/// Rank 0's calls on one table. Rows begin as zeros; each push adds 1.
class Caller {
 public:
  Caller(ps::Table<float>& table, const PsPerfOptions& options, Measurements& lines)
      : table_(table), options_(options), lines_(lines), rows_(options.keys_per_call * table.row_length()) {}

  void access(const std::string& where, std::span<const Key> keys) {
    for (const std::size_t num : {std::size_t{1}, options_.keys_per_call}) {
      std::fill(rows_.begin(), rows_.end(), 1.0F);
      const auto rows = std::span(rows_).first(num * table_.row_length());
      time_calls("push", where, num, [&](int i) { table_.push(some(keys, i, num), rows); });
      time_calls("pull", where, num, [&](int i) { table_.pull(some(keys, i, num), rows); });
      check(rows);
      if (where == "local") continue;
      pipeline("push", where, num, keys,
               [&](std::span<const Key> k, std::span<float> r) { return table_.ipush(k, r); });
      pipeline("pull", where, num, keys,
               [&](std::span<const Key> k, std::span<float> r) { return table_.ipull(k, r); });
    }
  }

  /// Each of `keys` once.
  void localize(std::span<const Key> keys) {
    const std::size_t half = keys.size() / 2, num = options_.keys_per_call;
    std::vector<double> times;
    for (std::size_t i = 0; i < std::min<std::size_t>(half, static_cast<std::size_t>(options_.iterations));
         ++i) {
      const auto begin = Clock::now();
      table_.localize(keys.subspan(i, 1));
      times.push_back(us_since(begin));
    }
    const double single = median(times);
    lines_.add({"localize", "remote", 1, table_.row_length(), 1}, single, 1e6 / single);
    const auto begin = Clock::now();
    std::size_t calls = 0;
    for (std::size_t i = half; i + num <= keys.size(); i += num, ++calls)
      table_.localize(keys.subspan(i, num));
    const double each = us_since(begin) / static_cast<double>(calls);
    lines_.add({"localize", "remote", num, table_.row_length(), 1}, each,
               1e6 * static_cast<double>(num) / each);
  }

  /// The time from an intent until the rows are local. Each of `keys` once.
  void intent(std::span<const Key> keys) {
    const std::size_t half = keys.size() / 2, num = options_.keys_per_call;
    std::vector<double> times;
    for (std::size_t i = 0; i < std::min(half, static_cast<std::size_t>(options_.iterations)); ++i)
      times.push_back(us_until_local(keys.subspan(i, 1)));
    const double single = median(times);
    lines_.add({"intent", "remote", 1, table_.row_length(), 1}, single, 1e6 / single);
    times.clear();
    for (std::size_t i = half; i + num <= keys.size(); i += num)
      times.push_back(us_until_local(keys.subspan(i, num)));
    if (times.empty()) return;
    const double each = median(times);
    lines_.add({"intent", "remote", num, table_.row_length(), 1}, each,
               1e6 * static_cast<double>(num) / each);
  }

 private:
  double us_until_local(std::span<const Key> keys) {
    constexpr double kMostUs = 10e6;
    const auto rows = std::span(rows_).first(keys.size() * table_.row_length());
    std::vector<unsigned char> here(keys.size());
    const auto begin = Clock::now();
    table_.intent(keys, 0, 1);
    while (true) {
      table_.pull_if_local(keys, rows, here);
      const double us = us_since(begin);
      if (std::ranges::find(here, 0) == here.end()) return us;
      if (us > kMostUs)
        throw Error(
            Status::error(Code::kInternal, "hips-ps-perf: rows did not come within 10 s of an intent"));
    }
  }
  [[nodiscard]] std::span<const Key> some(std::span<const Key> keys, int i, std::size_t num) const {
    return keys.subspan(static_cast<std::size_t>(i) * num % (keys.size() - num + 1), num);
  }
  /// Calls that are waited for. Short ones are timed in groups: the clock takes as long as they do.
  template <typename Call>
  void time_calls(const std::string& operation, const std::string& where, std::size_t num, Call call) {
    const int group = where == "local" ? 100 : 1;
    for (int i = 0; i < group; ++i) call(i);
    std::vector<double> times;
    for (int i = 0; i < options_.iterations; i += group) {
      const auto begin = Clock::now();
      for (int j = 0; j < group; ++j) call(i + j);
      times.push_back(us_since(begin) / group);
    }
    const double each = median(times);
    lines_.add({operation, where, num, table_.row_length(), 1}, each, 1e6 * static_cast<double>(num) / each);
  }
  template <typename Start>
  void pipeline(const std::string& operation, const std::string& where, std::size_t num,
                std::span<const Key> keys, Start start) {
    std::vector<std::vector<float>> rows(options_.outstanding,
                                         std::vector<float>(num * table_.row_length(), 1));
    std::vector<Request> requests(options_.outstanding);
    const int calls = 5 * options_.iterations;
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) % options_.outstanding;
      requests[at].wait();
      requests[at] = start(some(keys, i, num), rows[at]);
    }
    wait_all(requests);
    const double us = us_since(begin);
    lines_.add({operation, where, num, table_.row_length(), options_.outstanding}, us / calls,
               1e6 * static_cast<double>(calls) * static_cast<double>(num) / us);
  }
  /// Rows that have been pushed to have whole numbers, the same in all elements.
  void check(std::span<const float> rows) const {
    for (std::size_t i = 0; i < rows.size(); i += table_.row_length())
      for (std::size_t j = 0; j < table_.row_length(); ++j)
        if (rows[i + j] < 1 || rows[i + j] != rows[i])
          throw Error(
              Status::error(Code::kInternal, fmt::format("hips-ps-perf: pulled {} where {} was expected",
                                                         rows[i + j], std::max(rows[i], 1.0F))));
  }

  ps::Table<float>& table_;
  const PsPerfOptions& options_;
  Measurements& lines_;
  std::vector<float> rows_;
};

/// A rank whose keys are not on rank 0's node, the same on all ranks; -1: none.
int rank_elsewhere(Communicator& comm, const ps::Table<float>& table) {
  std::vector<std::int32_t> found(1, -1);
  if (comm.rank() == 0) {
    std::vector<float> row(table.row_length());
    for (int r = comm.size() - 1; r > 0; --r) {
      const Key key = static_cast<Key>(r);
      unsigned char here = 0;
      table.pull_if_local(std::span(&key, 1), row, std::span(&here, 1));
      if (here == 0) found[0] = r;
    }
  }
  comm.bcast(found, 0);
  return found[0];
}

/// Few enough for a cache, as the rows that a worker is busy with.
std::span<const Key> busy_with(std::span<const Key> own, const PsPerfOptions& options) {
  return own.first(std::min<std::size_t>(own.size(), 10 * options.keys_per_call));
}

}  // namespace

PsPerfResult measure(Communicator& comm, const PsPerfOptions& options) {
  PsPerfResult result;
  Measurements lines;
  std::vector<double> ping_pongs;
  const auto size = static_cast<Key>(comm.size());
  // Half of a rank's keys are moved one by one, and half in whole calls.
  if (options.model_floats == 0 && options.zipf == 0 && options.num_keys / size < 2 * options.keys_per_call)
    throw Error(Status::error(
        Code::kInvalidArgument,
        fmt::format(
            "hips-ps-perf: --keys is {}; expected at least {}, two calls of {} keys on each of {} ranks",
            options.num_keys, 2 * options.keys_per_call * size, options.keys_per_call, size)));
  for (int round = 0; round < options.rounds; ++round) {
    if (options.model_floats > 0) {
      measure_updates(comm, options, lines);
      continue;
    }
    if (options.zipf > 0) {
      measure_steps(comm, options, lines);
      continue;
    }
    for (const std::size_t length : options.row_lengths) {
      ps::Table<float> table(comm, {.num_keys = options.num_keys, .row_length = length});
      const auto of_rank = [&](Key rank) {
        std::vector<Key> keys;
        for (Key key = rank; key < options.num_keys; key += size) keys.push_back(key);
        return keys;
      };
      table.localize(of_rank(static_cast<Key>(comm.rank())));
      comm.barrier();
      result.peer = rank_elsewhere(comm, table);
      if (result.peer >= 0)
        if (const auto us = ping_pong_us(comm, result.peer, options.iterations)) ping_pongs.push_back(*us);
      if (comm.rank() == 0) {
        Caller caller(table, options, lines);
        const std::vector<Key> own = of_rank(0);
        caller.access("local", busy_with(own, options));
        if (result.peer >= 0) {
          const std::vector<Key> other = of_rank(static_cast<Key>(result.peer));
          caller.access("remote", other);
          caller.localize(other);
        }
      }
      comm.barrier();
      if (result.peer < 0) continue;
      // The rows of the other rank go back to it, to come by intent.
      const std::vector<Key> other = of_rank(static_cast<Key>(result.peer));
      if (comm.rank() == result.peer) table.localize(other);
      comm.barrier();
      if (comm.rank() == 0) Caller(table, options, lines).intent(other);
      comm.barrier();
      if (!options.compares_classic) continue;
      ps::Table<float> classic(comm, {.num_keys = options.num_keys, .row_length = length});
      if (comm.rank() == 0) {
        const std::vector<Key> own = of_rank(0);
        Caller(classic, options, lines).access("classic", busy_with(own, options));
      }
      comm.barrier();
    }
  }
  if (!ping_pongs.empty()) result.ping_pong_us = median(ping_pongs);
  result.lines = lines.take(result.ping_pong_us);
  return result;
}

}  // namespace hips::ps_perf
