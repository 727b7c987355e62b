#include "tests/ps/history.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hips::ps::test {
namespace {

using Row = std::vector<std::uint64_t>;

bool at_most(const Row& a, const Row& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](std::uint64_t x, std::uint64_t y) { return x <= y; });
}

std::optional<std::string> broken_of_key(std::vector<History::Access> accesses, std::size_t num_workers) {
  // All rows that were ever read are a chain.
  std::vector<const History::Access*> reads;
  for (const auto& access : accesses)
    if (!access.is_push) reads.push_back(&access);
  const auto sum = [](const Row& row) { return std::accumulate(row.begin(), row.end(), std::uint64_t{0}); };
  std::sort(reads.begin(), reads.end(),
            [&](const auto* a, const auto* b) { return sum(a->row) < sum(b->row); });
  for (std::size_t i = 1; i < reads.size(); ++i)
    if (!at_most(reads[i - 1]->row, reads[i]->row))
      return fmt::format("rows [{}] and [{}] were read of key {}: neither follows the other",
                         fmt::join(reads[i - 1]->row, " "), fmt::join(reads[i]->row, " "), reads[i]->key);
  // In the order of time: what ended before an access began is seen by it, what began after it ended is not.
  struct Event {
    std::uint64_t time;
    bool is_end;
    const History::Access* access;
  };
  std::vector<Event> events;
  for (const auto& access : accesses) {
    events.push_back({access.begin, false, &access});
    if (access.end != UINT64_MAX) events.push_back({access.end, true, &access});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
  Row seen(num_workers), pushed(num_workers), started(num_workers);
  std::map<const History::Access*, Row> least;
  for (const Event& event : events) {
    const History::Access& access = *event.access;
    if (access.is_push) {
      ++(event.is_end ? pushed : started)[access.worker];
    } else if (!event.is_end) {
      Row& row = least[&access];
      for (std::size_t w = 0; w < num_workers; ++w) row.push_back(std::max(seen[w], pushed[w]));
      row[access.worker] = std::max(row[access.worker], access.own_before);
    } else {
      if (!at_most(least[&access], access.row))
        return fmt::format("worker {} read [{}] of key {}, which had reached [{}] before it asked",
                           access.worker, fmt::join(access.row, " "), access.key,
                           fmt::join(least[&access], " "));
      if (!at_most(access.row, started))
        return fmt::format("worker {} read [{}] of key {}, where only [{}] pushes had begun", access.worker,
                           fmt::join(access.row, " "), access.key, fmt::join(started, " "));
      if (access.row[access.worker] != access.own_before)
        return fmt::format("worker {} read {} of its own counter of key {}; it had pushed {} times before",
                           access.worker, access.row[access.worker], access.key, access.own_before);
      for (std::size_t w = 0; w < num_workers; ++w) seen[w] = std::max(seen[w], access.row[w]);
    }
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t History::num_unended_pushes(std::size_t worker, Key key) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(accesses_, [&](const Access& access) {
    return access.is_push && access.end == UINT64_MAX && access.worker == worker && access.key == key;
  }));
}

std::optional<std::string> History::broken() const {
  std::map<Key, std::vector<Access>> by_key;
  for (const Access& access : accesses_) by_key[access.key].push_back(access);
  for (const auto& [key, accesses] : by_key)
    if (auto found = broken_of_key(accesses, num_workers_)) return found;
  return std::nullopt;
}

}  // namespace hips::ps::test
