#include "lib/mpi/guard.hpp"

#include <algorithm>
#include <cstdlib>

namespace hips::mpi {
namespace {

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The median distance from the median: one trial that was disturbed does not move it.
std::int64_t scatter(std::vector<std::int64_t> values, std::int64_t centre) {
  for (std::int64_t& value : values) value = std::abs(value - centre);
  return median(std::move(values));
}

}  // namespace

std::uint64_t GuardClass::least_bytes() const {
  return size_class == 0 ? 0 : std::uint64_t{1} << (size_class - 1);
}

std::uint64_t GuardClass::most_bytes() const {
  return size_class == 0 ? 0 : least_bytes() - 1 + least_bytes();
}

const char* to_string(GuardKind kind) {
  return kind.index() < kNumReduceOps
             ? hips::to_string(static_cast<ReduceOp>(kind.index()))
             : hips::to_string(static_cast<Collective>(kind.index() - kNumReduceOps));
}

int Guard::num_trials(GuardClass of) {
  if (of.most_bytes() < 64U << 10U) return 7;
  if (of.most_bytes() < 4U << 20U) return 5;
  return 3;
}

Guard::Guard(bool tries) {
  for (auto& of_op : ways_) of_op.fill(tries ? Way::kTrial : Way::kHips);
}

Way Guard::next(GuardClass of) const {
  const auto trials = trials_.find(of);
  // In turn, so that whatever changes while the program runs changes for both.
  return trials == trials_.end() || trials->second.calls % 2 == 0 ? Way::kHost : Way::kHips;
}

void Guard::took(GuardClass of, std::int64_t ns) {
  Trials& trials = trials_[of];
  if (trials.calls++ >= 2 * kWarmUps) trials.samples.push_back(ns);
}

bool Guard::complete(GuardClass of) const {
  const auto trials = trials_.find(of);
  return trials != trials_.end() &&
         trials->second.samples.size() == 2 * static_cast<std::size_t>(num_trials(of));
}

std::span<std::int64_t> Guard::samples(GuardClass of) {
  return trials_[of].samples;
}

const GuardVerdict* Guard::settle(GuardClass of) {
  Trials& trials = trials_[of];
  std::vector<std::int64_t> host, hips;
  for (std::size_t i = 0; i + 1 < trials.samples.size(); i += 2) {
    host.push_back(trials.samples[i]);
    hips.push_back(trials.samples[i + 1]);
  }
  GuardVerdict verdict{.hips_ns = median(hips), .host_ns = median(host)};
  const std::int64_t margin =
      std::max(verdict.hips_ns / 20, scatter(hips, verdict.hips_ns) + scatter(host, verdict.host_ns));
  verdict.winner = verdict.hips_ns - verdict.host_ns > margin ? Way::kHost : Way::kHips;
  if (verdict.winner == Way::kHost && ++trials.host_wins < kHostWins) {
    trials.samples.clear();
    return nullptr;
  }
  trials_.erase(of);
  set(of, verdict);
  return &verdicts_[of];
}

void Guard::set(GuardClass of, const GuardVerdict& verdict) {
  ways_[static_cast<std::size_t>(of.kind.index())][static_cast<std::size_t>(of.size_class)] = verdict.winner;
  verdicts_[of] = verdict;
}

std::map<GuardClass, int> Guard::unfinished() const {
  std::map<GuardClass, int> calls;
  for (const auto& [of, trials] : trials_) calls[of] = trials.calls;
  return calls;
}

}  // namespace hips::mpi
