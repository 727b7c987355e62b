#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <hips/types.hpp>

#include "lib/base/collective.hpp"

namespace hips::mpi {

/// Which library executes a call.
enum class TuningChoice : std::uint8_t {
  kTrial,  ///< undecided: native MPI and HiPS alternate, and both are timed
  kHips,
  kNative,
};

/// The kind of a call: an allreduce with one operation or by any function, or another collective.
class CallKind {
 public:
  static constexpr int kFunction = kNumReduceOps + kNumCollectives;  ///< index of an allreduce by a function
  static constexpr int kNum = kFunction + 1;

  constexpr CallKind(ReduceOp op)  // NOLINT: is one
      : value_(static_cast<std::uint8_t>(static_cast<int>(op) < kNumReduceOps ? static_cast<int>(op)
                                                                              : kFunction)) {}
  constexpr CallKind(Collective collective)  // NOLINT: is one
      : value_(static_cast<std::uint8_t>(kNumReduceOps + static_cast<int>(collective))) {}
  /// 0 to kNum - 1.
  static constexpr CallKind of_index(int index) {
    return index < kNumReduceOps || index == kFunction
               ? CallKind(static_cast<ReduceOp>(index))
               : CallKind(static_cast<Collective>(index - kNumReduceOps));
  }
  [[nodiscard]] constexpr int index() const { return value_; }
  friend auto operator<=>(const CallKind&, const CallKind&) = default;

 private:
  std::uint8_t value_;
};

/// "sum" or "function" of an allreduce, "bcast"
const char* to_string(CallKind kind);

/// Calls that share a tuning decision: one kind, and vectors of [2^(size_class-1), 2^size_class) bytes.
struct CallClass {
  static constexpr int kNumSizes = 65;

  CallKind kind = ReduceOp::kSum;
  int size_class = 0;

  static CallClass of(std::uint64_t bytes, CallKind kind) {
    return {kind, static_cast<int>(std::bit_width(bytes))};
  }
  [[nodiscard]] std::uint64_t least_bytes() const;
  [[nodiscard]] std::uint64_t most_bytes() const;
  friend auto operator<=>(const CallClass&, const CallClass&) = default;
};

/// The outcome of the trials of one class.
struct TuningDecision {
  TuningChoice winner = TuningChoice::kHips;
  std::int64_t hips_ns = 0, native_ns = 0;  ///< medians over trials of the slowest rank's time
  std::uint32_t review_after = 0;           ///< calls until it is looked at again; 0: not known
  std::uint32_t calls_left = 0;             ///< of these, on a later communicator; 0: all
  friend bool operator==(const TuningDecision&, const TuningDecision&) = default;
};

/// Decides for each class of calls of one communicator whether HiPS or native MPI executes them.
///
/// All decisions depend on earlier calls and on times that all ranks have exchanged, so all ranks decide alike
/// without further messages. A trial is the n-th call of its class; of each two native MPI executes one. The caller
/// replaces samples() by those of all ranks before decide().
///
/// Trials begin on all ranks at the same time, as the calls of a program do not: its ranks are early and late, and share
/// cores. So a decision is looked at again from time to time (a review): both sides execute some calls one after the
/// other, as the program makes them. What counts is the mean time of all ranks in them, and from one to the next, since a
/// rank that waits may slow down another one that computes.
///
/// Cost     begin_call() reads and writes 4 bytes. A class takes kWarmUps + num_trials() calls of each side, and
///          num_trials() more if native MPI was faster; most_calls() in all. A review takes kReviewRounds * review_block()
///          calls of each side, or fewer; the first comes after 150 calls, later where one side is far slower, and
///          each next one after eight times as many: what the slower side costs is at most a seventh of the calls before.
/// Threads  one at a time, like the communicator.
class Guard {
 public:
  /// Untimed calls of each side. The first call also opens connections and touches pages and caches.
  static constexpr int kWarmUps = 1;
  /// How often native MPI has to win, each time by new samples. Its win holds until a review, and HiPS reaches its full
  /// speed only after several calls.
  static constexpr int kNativeWins = 2;
  /// Timed calls of each side: fewer for calls that take long.
  static int num_trials(CallClass of);
  /// Calls of both sides that a class needs at most before it is decided.
  static int most_calls(CallClass of) { return 2 * (kWarmUps + kNativeWins * num_trials(of)); }

  /// Calls of one side at a time in the first review, more in later ones, fewer where one side is far slower; the first is not timed.
  static int review_block(CallClass of);
  static constexpr int kReviewRounds = 3;

  /// Without trials, HiPS executes every class except those that set() gives to native MPI.
  explicit Guard(bool has_trials);

  [[nodiscard]] TuningChoice choice(CallClass of) const { return slot(of).choice; }
  /// For calls that become requests, which take part in no trial: HiPS where nothing is decided.
  [[nodiscard]] TuningChoice choice_of_requests(CallClass of) const { return slot(of).of_requests; }
  /// The same for a blocking call that begins; now and then it is the first of a review.
  TuningChoice begin_call(CallClass of) {
    Slot& now = slot(of);
    if (now.choice != TuningChoice::kTrial && now.until_review != 0 && --now.until_review == 0) [[unlikely]]
      begin_review(of, now);
    return now.choice;
  }

  /// Undoes begin_call() for a call that was refused on this rank alone: it did not take place.
  void take_back_call(CallClass of) {
    if (Slot& now = slot(of); now.choice != TuningChoice::kTrial && now.until_review != 0) ++now.until_review;
  }

  /// The library that executes the next trial, or the next call of a review.
  [[nodiscard]] TuningChoice next(CallClass of) const;
  /// True if the next call is of a review: ranks are not brought together before it.
  [[nodiscard]] bool is_review(CallClass of) const;
  /// Adds the time of a completed trial on this rank, which ended at `end_ns`.
  void add_sample(CallClass of, std::int64_t ns, std::int64_t end_ns);
  /// True if the class has as many samples as decide() needs.
  [[nodiscard]] bool complete(CallClass of) const;
  /// Times of the timed trials since the last decide(), native MPI and HiPS alternating; the same number on all
  /// ranks. Of a review the time in a call and then that from one call to the next.
  std::span<std::int64_t> samples(CallClass of);
  /// Decides from samples(): of trials those of the slowest rank, of a review the mean of all ranks. After trials native
  /// MPI wins only by more than 5 % and by more than the samples scatter, kNativeWins times in a row; HiPS wins ties, but of
  /// barriers, which move nothing. After
  /// a review the winner changes where calls of the other side take less time by more than 5 % and by more than they scatter, or where the program is faster
  /// with it in every round; not where it is slower in every round. Null: native MPI has not won often enough yet, and trials continue.
  const TuningDecision* decide(CallClass of);

  /// HiPS cannot execute a call of this class, as all ranks have found in the same call: no trial follows, and no review.
  void give_to_native(CallClass of);

  /// Adopts a decision of another run.
  void set(CallClass of, const TuningDecision& decision);
  [[nodiscard]] const std::map<CallClass, TuningDecision>& decisions() const { return decisions_; }
  struct Trials;
  /// The trials of classes that are not decided yet. A later guard of the same ranks goes on from them; where ranks find that
  /// they have made different numbers of them, they begin again.
  [[nodiscard]] std::map<CallClass, Trials> unfinished() const;
  void resume(const std::map<CallClass, Trials>& unfinished);
  /// Notes in decisions of this guard how many calls are left until each is looked at again: now, if it is being looked at.
  void keep_calls_left(std::map<CallClass, TuningDecision>& decisions) const;
  /// Completed trials of an undecided class.
  [[nodiscard]] int num_done(CallClass of) const;
  void begin_again(CallClass of) { trials_.erase(of); }
  /// Number of completed trials of each undecided class.
  [[nodiscard]] std::map<CallClass, int> undecided() const;

 private:
  struct Slot {
    TuningChoice choice = TuningChoice::kTrial;
    TuningChoice of_requests = TuningChoice::kHips;
    std::uint32_t until_review = 0;  ///< calls; 0: none
  };
  [[nodiscard]] const Slot& slot(CallClass of) const {
    return slots_[static_cast<std::size_t>(of.kind.index())][static_cast<std::size_t>(of.size_class)];
  }
  [[nodiscard]] Slot& slot(CallClass of) {
    return slots_[static_cast<std::size_t>(of.kind.index())][static_cast<std::size_t>(of.size_class)];
  }
  void begin_review(CallClass of, Slot& now);
  const TuningDecision* decide_review(CallClass of, std::span<const std::int64_t> samples);

  bool has_trials_;
  std::array<std::array<Slot, CallClass::kNumSizes>, CallKind::kNum> slots_;
  std::map<CallClass, Trials> trials_;
  std::map<CallClass, TuningDecision> decisions_;
};

struct Guard::Trials {
  int calls = 0, native_wins = 0;
  bool is_review = false;
  int block = 0;              ///< calls of one side at a time in a review
  std::int64_t block_ns = 0;  ///< in the timed calls of the current block of a review
  std::int64_t begin_ns = 0;  ///< when they began
  std::vector<std::int64_t> samples;
};

}  // namespace hips::mpi
