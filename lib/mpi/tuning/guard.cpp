#include "lib/mpi/tuning/guard.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace hips::mpi {
namespace {

/// Calls until the first review, factor from one to the next, and most calls between two.
constexpr std::uint32_t kFirstReview = 150, kGrowth = 8, kMostBetween = 1U << 30U;
constexpr std::uint32_t kLongestBlock = 65;
/// Calls between reviews for each call of a block, and each time that the slower side takes longer than the faster one: its
/// kReviewRounds blocks cost a seventh of the time of the calls before.
constexpr double kCallsPerBlockCall = 22;

/// The place of the median among sorted values: of an even number the upper one. The lower one for distances from it: where half of
/// the values are at one place and half at another, they scatter little.
std::int64_t value_at(std::vector<std::int64_t> values, std::size_t place) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}
std::int64_t median(const std::vector<std::int64_t>& values) {
  return value_at(values, values.size() / 2);
}

/// Who executes a trial of a class with `num` timed ones of each side: one of each two calls each, so that changes while the program
/// runs affect both sides, first native MPI and then, in the second half, HiPS. So both sides get each call of a loop equally often:
/// with six timed ones of loops of two and three calls, with four of loops of two and four.
bool is_of_hips(int call, int num) {
  const int timed = call - 2 * Guard::kWarmUps;
  const bool is_second = call % 2 == 1, is_second_half = timed >= 0 && timed % (2 * num) >= num;
  return is_second != is_second_half;
}

/// The same for the blocks of a review: one of each two, in the middle round HiPS first.
bool is_block_of_hips(int block) {
  return (block % 2 == 1) != (block / 2 % 2 == 1);
}

/// How much longer the slower side takes, in times of the faster one.
double lag_of(const TuningDecision& decision) {
  const auto [faster, slower] = std::minmax(decision.hips_ns, decision.native_ns);
  return faster > 0 ? static_cast<double>(slower - faster) / static_cast<double>(faster) : 0;
}

/// A barrier moves nothing. Where it takes as long with both, a rank that waits in native MPI also serves the program's other
/// traffic, and HiPS has nothing to offer for that.
bool native_wins_ties(CallClass of) {
  return of.kind == CallKind(Collective::kBarrier);
}

/// The median distance from the median: one disturbed trial does not change it.
std::int64_t scatter(std::vector<std::int64_t> values, std::int64_t centre) {
  for (std::int64_t& value : values) value = std::abs(value - centre);
  return value_at(values, (values.size() - 1) / 2);
}

}  // namespace

std::uint64_t CallClass::least_bytes() const {
  return size_class == 0 ? 0 : std::uint64_t{1} << (size_class - 1);
}

std::uint64_t CallClass::most_bytes() const {
  return size_class == 0 ? 0 : least_bytes() - 1 + least_bytes();
}

const char* to_string(CallKind kind) {
  if (kind.index() == CallKind::kFunction) return "function";
  return kind.index() < kNumReduceOps
             ? hips::to_string(static_cast<ReduceOp>(kind.index()))
             : hips::to_string(static_cast<Collective>(kind.index() - kNumReduceOps));
}

int Guard::num_trials(CallClass of) {
  return of.most_bytes() < 4U << 20U ? 6 : 4;
}

int Guard::review_block(CallClass of) {
  // The timed ones are a power of two, as the calls of many loops are.
  if (of.most_bytes() < 64U << 10U) return 1 + 32;
  if (of.most_bytes() < 4U << 20U) return 1 + 8;
  return 1 + 4;
}

Guard::Guard(bool has_trials) : has_trials_(has_trials) {
  for (auto& of_kind : slots_)
    of_kind.fill({.choice = has_trials ? TuningChoice::kTrial : TuningChoice::kHips});
}

void Guard::begin_review(CallClass of, Slot& now) {
  if (!has_trials_) return;
  now.choice = TuningChoice::kTrial;
  trials_[of] = {};
  trials_[of].is_review = true;
  // The more calls have passed, the more a review may take: longer blocks scatter less.
  const TuningDecision& decision = decisions_[of];
  const int longer =
      std::max(review_block(of), static_cast<int>(std::min(decision.review_after / 100, kLongestBlock)));
  const double lag = kCallsPerBlockCall * lag_of(decision), most = decision.review_after;
  trials_[of].block = std::max(2, longer * lag > most ? static_cast<int>(most / lag) : longer) | 1;
}

bool Guard::is_review(CallClass of) const {
  const auto trials = trials_.find(of);
  return trials != trials_.end() && trials->second.is_review;
}

TuningChoice Guard::next(CallClass of) const {
  const auto trials = trials_.find(of);
  if (trials != trials_.end() && trials->second.is_review)
    return is_block_of_hips(trials->second.calls / trials->second.block) ? TuningChoice::kHips
                                                                         : TuningChoice::kNative;
  const int calls = trials == trials_.end() ? 0 : trials->second.calls;
  return is_of_hips(calls, num_trials(of)) ? TuningChoice::kHips : TuningChoice::kNative;
}

void Guard::add_sample(CallClass of, std::int64_t ns, std::int64_t end_ns) {
  Trials& trials = trials_[of];
  const int call = trials.calls++;
  if (!trials.is_review) {
    if (call < 2 * kWarmUps) return;
    trials.samples.push_back(ns);
    if (call % 2 == 1 && !is_of_hips(call, num_trials(of)))
      std::swap(trials.samples.back(), *(trials.samples.end() - 2));
    return;
  }
  const int block = trials.block, place = call % block;
  if (place == 0)
    trials.begin_ns = end_ns;
  else
    trials.block_ns += ns;
  if (place < block - 1) return;
  trials.samples.push_back(std::exchange(trials.block_ns, 0) / (block - 1));
  trials.samples.push_back((end_ns - trials.begin_ns) / (block - 1));
  if (const int number = call / block; number % 2 == 1 && !is_block_of_hips(number))
    std::swap_ranges(trials.samples.end() - 4, trials.samples.end() - 2, trials.samples.end() - 2);
}

bool Guard::complete(CallClass of) const {
  const auto trials = trials_.find(of);
  if (trials == trials_.end()) return false;
  const int rounds = trials->second.is_review ? 2 * kReviewRounds : num_trials(of);
  return trials->second.samples.size() == 2 * static_cast<std::size_t>(rounds);
}

std::span<std::int64_t> Guard::samples(CallClass of) {
  return trials_[of].samples;
}

const TuningDecision* Guard::decide_review(CallClass of, std::span<const std::int64_t> samples) {
  const auto is_longer = [](std::int64_t a, std::int64_t b) { return a - b > b / 20; };
  std::vector<std::int64_t> native, hips;
  bool always_faster = true, always_slower = true;  // the program, with HiPS
  for (std::size_t i = 0; i + 3 < samples.size(); i += 4) {
    native.push_back(samples[i]);
    hips.push_back(samples[i + 2]);
    const std::int64_t with_native = samples[i + 1], with_hips = samples[i + 3];
    always_faster = always_faster && is_longer(with_native, with_hips);
    always_slower = always_slower && is_longer(with_hips, with_native);
  }
  TuningDecision decision{.hips_ns = median(hips), .native_ns = median(native)};
  const TuningChoice before = decisions_[of].winner;
  const std::uint32_t review_after = decisions_[of].review_after;
  const bool was_hips = before == TuningChoice::kHips;
  // Ranks that wait for each other make the times of calls scatter more than they differ.
  const std::int64_t scattered = scatter(hips, decision.hips_ns) + scatter(native, decision.native_ns);
  const bool calls_say = (was_hips ? is_longer(decision.hips_ns, decision.native_ns)
                                   : is_longer(decision.native_ns, decision.hips_ns)) &&
                         std::abs(decision.hips_ns - decision.native_ns) > scattered;
  const bool program_says = was_hips ? always_slower : always_faster;
  const bool program_denies = was_hips ? always_faster : always_slower;
  const bool stays_a_tie =
      was_hips && native_wins_ties(of) && !is_longer(decision.native_ns, decision.hips_ns);
  const bool changes = program_says || ((calls_say || stays_a_tie) && !program_denies);
  if (changes)
    decision.winner = was_hips ? TuningChoice::kNative : TuningChoice::kHips;
  else
    decision.winner = before;
  decision.review_after = (changes ? kFirstReview : std::min(review_after, kMostBetween / kGrowth)) * kGrowth;
  set(of, decision);
  return &decisions_[of];
}

const TuningDecision* Guard::decide(CallClass of) {
  Trials& trials = trials_[of];
  if (trials.is_review) {
    const std::vector<std::int64_t> samples = std::move(trials.samples);
    trials_.erase(of);
    return decide_review(of, samples);
  }
  std::vector<std::int64_t> native, hips;
  for (std::size_t i = 0; i + 1 < trials.samples.size(); i += 2) {
    native.push_back(trials.samples[i]);
    hips.push_back(trials.samples[i + 1]);
  }
  TuningDecision decision{.hips_ns = median(hips), .native_ns = median(native)};
  const std::int64_t margin =
      std::max(decision.hips_ns / 20, scatter(hips, decision.hips_ns) + scatter(native, decision.native_ns));
  const std::int64_t lead = decision.native_ns - decision.hips_ns;  // of HiPS
  decision.winner = lead < -margin || (native_wins_ties(of) && lead <= margin) ? TuningChoice::kNative
                                                                               : TuningChoice::kHips;
  if (decision.winner == TuningChoice::kNative && ++trials.native_wins < kNativeWins) {
    trials.samples.clear();
    return nullptr;
  }
  trials_.erase(of);
  set(of, decision);
  return &decisions_[of];
}

void Guard::give_to_native(CallClass of) {
  trials_.erase(of);
  slot(of) = {.choice = TuningChoice::kNative, .of_requests = TuningChoice::kNative, .until_review = 0};
}

std::map<CallClass, Guard::Trials> Guard::unfinished() const {
  std::map<CallClass, Trials> all = trials_;
  std::erase_if(all, [this](const auto& one) { return one.second.is_review || complete(one.first); });
  return all;
}

void Guard::resume(const std::map<CallClass, Trials>& unfinished) {
  if (!has_trials_) return;
  for (const auto& [of, trials] : unfinished)
    if (slot(of).choice == TuningChoice::kTrial) trials_.emplace(of, trials);
}

int Guard::num_done(CallClass of) const {
  const auto trials = trials_.find(of);
  return trials == trials_.end() ? 0 : trials->second.calls;
}

void Guard::set(CallClass of, const TuningDecision& decision) {
  TuningDecision& now = decisions_[of] = decision;
  if (now.review_after == 0) {
    // A side that is far slower would waste the calls of the review.
    const double calls = kCallsPerBlockCall * review_block(of) * lag_of(decision);
    now.review_after =
        static_cast<std::uint32_t>(std::clamp<double>(calls, kFirstReview, kMostBetween / kGrowth));
  }
  const std::uint32_t calls = std::exchange(now.calls_left, 0);
  slot(of) = {.choice = now.winner,
              .of_requests = now.winner,
              .until_review = !has_trials_ ? 0
                              : calls > 0  ? calls
                                           : now.review_after};
}

void Guard::keep_calls_left(std::map<CallClass, TuningDecision>& decisions) const {
  if (!has_trials_) return;
  for (auto& [of, decision] : decisions) {
    if (!decisions_.contains(of)) continue;
    const Slot& now = slot(of);
    decision.calls_left = now.choice == TuningChoice::kTrial ? 1 : now.until_review;
  }
}

std::map<CallClass, int> Guard::undecided() const {
  std::map<CallClass, int> calls;
  for (const auto& [of, trials] : trials_) calls[of] = trials.calls;
  return calls;
}

}  // namespace hips::mpi
