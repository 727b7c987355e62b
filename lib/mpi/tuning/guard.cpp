#include "lib/mpi/tuning/guard.hpp"

#include <algorithm>
#include <cstdlib>

namespace hips::mpi {
namespace {

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The median distance from the median: one disturbed trial does not change it.
std::int64_t scatter(std::vector<std::int64_t> values, std::int64_t centre) {
  for (std::int64_t& value : values) value = std::abs(value - centre);
  return median(std::move(values));
}

}  // namespace

std::uint64_t CallClass::least_bytes() const {
  return size_class == 0 ? 0 : std::uint64_t{1} << (size_class - 1);
}

std::uint64_t CallClass::most_bytes() const {
  return size_class == 0 ? 0 : least_bytes() - 1 + least_bytes();
}

const char* to_string(CallKind kind) {
  return kind.index() < kNumReduceOps
             ? hips::to_string(static_cast<ReduceOp>(kind.index()))
             : hips::to_string(static_cast<Collective>(kind.index() - kNumReduceOps));
}

int Guard::num_trials(CallClass of) {
  if (of.most_bytes() < 64U << 10U) return 7;
  if (of.most_bytes() < 4U << 20U) return 5;
  return 3;
}

Guard::Guard(bool has_trials) {
  for (auto& of_kind : choices_) of_kind.fill(has_trials ? TuningChoice::kTrial : TuningChoice::kHips);
}

TuningChoice Guard::next(CallClass of) const {
  const auto trials = trials_.find(of);
  // Alternating, so that changes while the program runs affect both sides.
  return trials == trials_.end() || trials->second.calls % 2 == 0 ? TuningChoice::kNative
                                                                  : TuningChoice::kHips;
}

void Guard::add_sample(CallClass of, std::int64_t ns) {
  Trials& trials = trials_[of];
  if (trials.calls++ >= 2 * kWarmUps) trials.samples.push_back(ns);
}

bool Guard::complete(CallClass of) const {
  const auto trials = trials_.find(of);
  return trials != trials_.end() &&
         trials->second.samples.size() == 2 * static_cast<std::size_t>(num_trials(of));
}

std::span<std::int64_t> Guard::samples(CallClass of) {
  return trials_[of].samples;
}

const TuningDecision* Guard::decide(CallClass of) {
  Trials& trials = trials_[of];
  std::vector<std::int64_t> native, hips;
  for (std::size_t i = 0; i + 1 < trials.samples.size(); i += 2) {
    native.push_back(trials.samples[i]);
    hips.push_back(trials.samples[i + 1]);
  }
  TuningDecision decision{.hips_ns = median(hips), .native_ns = median(native)};
  const std::int64_t margin =
      std::max(decision.hips_ns / 20, scatter(hips, decision.hips_ns) + scatter(native, decision.native_ns));
  decision.winner =
      decision.hips_ns - decision.native_ns > margin ? TuningChoice::kNative : TuningChoice::kHips;
  if (decision.winner == TuningChoice::kNative && ++trials.native_wins < kNativeWins) {
    trials.samples.clear();
    return nullptr;
  }
  trials_.erase(of);
  set(of, decision);
  return &decisions_[of];
}

void Guard::set(CallClass of, const TuningDecision& decision) {
  choices_[static_cast<std::size_t>(of.kind.index())][static_cast<std::size_t>(of.size_class)] =
      decision.winner;
  decisions_[of] = decision;
}

std::map<CallClass, int> Guard::undecided() const {
  std::map<CallClass, int> calls;
  for (const auto& [of, trials] : trials_) calls[of] = trials.calls;
  return calls;
}

}  // namespace hips::mpi
