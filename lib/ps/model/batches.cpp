#include "lib/ps/model/batches.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace hips::ps {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMostExact = 10;

/// An update with the latest position, counted in updates, at which it may be applied.
struct DueUpdate {
  std::size_t number = 0;
  std::int64_t time_ns = 0;
  std::int64_t latest = 0;
};

/// How many updates may be applied before a group whose `latest` are sorted; negative: it is possible at no place.
std::int64_t latest_begin(std::span<const std::int64_t> latest) {
  std::int64_t begin = kNever;
  for (std::size_t i = 0; i < latest.size(); ++i)
    begin = std::min(begin, latest[i] - static_cast<std::int64_t>(i));
  return begin;
}

/// As many updates as can be applied in time, short ones rather than long ones, which come first. They form a matroid, so taking
/// one after the other while all remain possible finds the most.
std::vector<DueUpdate> possible(std::vector<DueUpdate> updates) {
  std::ranges::stable_sort(updates, {}, &DueUpdate::time_ns);
  std::vector<DueUpdate> taken;
  std::vector<std::int64_t> latest;
  for (const DueUpdate& update : updates) {
    const auto at = latest.insert(std::ranges::upper_bound(latest, update.latest), update.latest);
    if (latest_begin(latest) >= 0)
      taken.push_back(update);
    else
      latest.erase(at);
  }
  return taken;
}

std::vector<std::size_t> numbers(std::span<const DueUpdate> group) {
  std::vector<std::size_t> result;
  for (const DueUpdate& update : group) result.push_back(update.number);
  return result;
}

/// The best of the orders in which no update comes after a longer one. `updates` are all possible, and ordered by time.
/// `presses`: whether a delay may come near its limit.
std::vector<std::vector<std::size_t>> ordered_by_time(std::span<const DueUpdate> updates, bool presses) {
  const std::size_t n = updates.size();
  // Of the first i updates: the least sum, and where their last group begins.
  std::vector<std::int64_t> least(n + 1, kNever);
  std::vector<std::size_t> begin(n + 1, 0);
  least[0] = 0;
  for (std::size_t from = 0; from < n; ++from) {
    if (least[from] == kNever) continue;
    std::vector<std::int64_t> latest;
    for (std::size_t to = from + 1; to <= n; ++to) {
      if (presses) {
        latest.insert(std::ranges::upper_bound(latest, updates[to - 1].latest), updates[to - 1].latest);
        // Nor is a longer group possible here.
        if (latest_begin(latest) < static_cast<std::int64_t>(from)) break;
      }
      // All from here on wait for this group.
      const std::int64_t sum = least[from] + updates[to - 1].time_ns * static_cast<std::int64_t>(n - from);
      if (sum >= least[to]) continue;
      least[to] = sum;
      begin[to] = from;
    }
  }
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t to = n; to > 0; to = begin[to])
    groups.push_back(numbers(updates.subspan(begin[to], to - begin[to])));
  std::ranges::reverse(groups);
  return groups;
}

/// The best order of `num_applied` of at most kMostExact updates: by all sets of updates that come first.
std::vector<std::vector<std::size_t>> best_of_all(std::span<const DueUpdate> updates,
                                                  std::size_t num_applied) {
  const std::size_t n = updates.size();
  const std::uint32_t num_sets = 1U << n;
  std::vector<std::int64_t> longest(num_sets, 0), begin(num_sets, kNever), least(num_sets, kNever);
  for (std::uint32_t set = 1; set < num_sets; ++set) {
    std::vector<std::int64_t> latest;
    for (std::size_t i = 0; i < n; ++i) {
      if ((set >> i & 1U) == 0) continue;
      latest.push_back(updates[i].latest);
      longest[set] = std::max(longest[set], updates[i].time_ns);
    }
    std::ranges::sort(latest);
    begin[set] = latest_begin(latest);
  }
  std::vector<std::uint32_t> last(num_sets, 0);  // group of a set
  least[0] = 0;
  for (std::uint32_t first = 0; first < num_sets; ++first) {
    if (least[first] == kNever) continue;
    const auto num_first = static_cast<std::size_t>(std::popcount(first));
    if (num_first >= num_applied) continue;
    const std::uint32_t rest = num_sets - 1 - first;
    for (std::uint32_t group = rest; group != 0; group = (group - 1) & rest) {
      if (begin[group] < static_cast<std::int64_t>(num_first)) continue;
      const std::int64_t sum =
          least[first] + longest[group] * static_cast<std::int64_t>(num_applied - num_first);
      if (sum >= least[first | group]) continue;
      least[first | group] = sum;
      last[first | group] = group;
    }
  }
  std::uint32_t best = 0;
  for (std::uint32_t set = 0; set < num_sets; ++set)
    if (static_cast<std::size_t>(std::popcount(set)) == num_applied &&
        (static_cast<std::size_t>(std::popcount(best)) != num_applied || least[set] < least[best]))
      best = set;
  std::vector<std::vector<std::size_t>> groups;
  for (std::uint32_t set = best; set != 0; set &= ~last[set]) {
    auto& group = groups.emplace_back();
    for (std::size_t i = 0; i < n; ++i)
      if ((last[set] >> i & 1U) != 0) group.push_back(updates[i].number);
  }
  std::ranges::reverse(groups);
  return groups;
}

}  // namespace

Batches plan_batches(std::span<const WaitingUpdate> updates, std::uint64_t version, std::uint64_t delay_max) {
  const std::size_t n = updates.size();
  std::vector<DueUpdate> all;
  for (std::size_t i = 0; i < n; ++i) {
    // A version is at most that of the shard.
    const std::uint64_t delay = version - updates[i].version;
    if (delay > delay_max) continue;
    all.push_back(
        {i, updates[i].time_ns, static_cast<std::int64_t>(std::min<std::uint64_t>(delay_max - delay, n))});
  }
  const std::vector<DueUpdate> taken = possible(all);
  const bool presses = std::ranges::any_of(all, [&](const DueUpdate& update) {
    return update.latest < static_cast<std::int64_t>(all.size()) - 1;
  });
  Batches batches;
  batches.groups =
      presses && all.size() <= kMostExact ? best_of_all(all, taken.size()) : ordered_by_time(taken, presses);
  std::vector<bool> is_applied(n, false);
  for (const auto& group : batches.groups)
    for (const std::size_t number : group) is_applied[number] = true;
  for (std::size_t i = 0; i < n; ++i)
    if (!is_applied[i]) batches.hopeless.push_back(i);
  return batches;
}

}  // namespace hips::ps
