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

/// Who carries a call.
enum class Way : std::uint8_t {
  kTrial,  ///< not known yet: HiPS and the host in turn, and both are timed
  kHips,
  kHost,
};

/// What calls of one class do: an allreduce by one operation, or another collective.
class GuardKind {
 public:
  static constexpr int kNum = kNumReduceOps + kNumCollectives;

  constexpr GuardKind(ReduceOp op) : value_(static_cast<std::uint8_t>(op)) {}  // NOLINT: is one
  constexpr GuardKind(Collective collective)                                   // NOLINT: is one
      : value_(static_cast<std::uint8_t>(kNumReduceOps + static_cast<int>(collective))) {}
  /// 0 to kNum - 1.
  static constexpr GuardKind of_index(int index) {
    return index < kNumReduceOps ? GuardKind(static_cast<ReduceOp>(index))
                                 : GuardKind(static_cast<Collective>(index - kNumReduceOps));
  }
  [[nodiscard]] constexpr int index() const { return value_; }
  friend auto operator<=>(const GuardKind&, const GuardKind&) = default;

 private:
  std::uint8_t value_;
};

/// "sum" of an allreduce, "bcast"
const char* to_string(GuardKind kind);

/// Calls that share a verdict: one kind, and vectors of [2^(size_class-1), 2^size_class) bytes.
struct GuardClass {
  static constexpr int kNumSizes = 65;

  GuardKind kind = ReduceOp::kSum;
  int size_class = 0;

  static GuardClass of(std::uint64_t bytes, GuardKind kind) {
    return {kind, static_cast<int>(std::bit_width(bytes))};
  }
  [[nodiscard]] std::uint64_t least_bytes() const;
  [[nodiscard]] std::uint64_t most_bytes() const;
  friend auto operator<=>(const GuardClass&, const GuardClass&) = default;
};

struct GuardVerdict {
  Way winner = Way::kHips;
  std::int64_t hips_ns = 0, host_ns = 0;  ///< medians of what the slowest rank took
  friend bool operator==(const GuardVerdict&, const GuardVerdict&) = default;
};

/// Decides for each class of calls of one communicator whether HiPS or the host MPI carries them.
///
/// Everything here depends on the calls so far and on times that all ranks have exchanged, so that all ranks
/// decide alike without another word: a trial is the n-th call of its class, host and HiPS in turn, and the
/// verdict comes from samples() after they were replaced by the slowest rank's.
///
/// Cost     way() reads one byte. A class takes kWarmUps + num_trials() calls of each side, and num_trials()
///          more where the host seems faster; most_calls() in all.
/// Threads  one at a time, as the communicator.
class Guard {
 public:
  /// The first call of each side pays for connections, pages and caches of its own.
  static constexpr int kWarmUps = 1;
  /// A verdict for the host lasts for the whole run, and HiPS needs more than one call to be at its best, so
  /// that the host must win as often, each time by samples of its own.
  static constexpr int kHostWins = 2;
  /// Timed calls of each side: more where they are short, since short ones scatter more.
  static int num_trials(GuardClass of);
  /// Calls of both sides that a class has no verdict for at the most.
  static int most_calls(GuardClass of) { return 2 * (kWarmUps + kHostWins * num_trials(of)); }

  /// Without trials HiPS carries what no verdict says otherwise about.
  explicit Guard(bool tries);

  [[nodiscard]] Way way(GuardClass of) const {
    return ways_[static_cast<std::size_t>(of.kind.index())][static_cast<std::size_t>(of.size_class)];
  }

  /// Who carries the next trial.
  [[nodiscard]] Way next(GuardClass of) const;
  /// The trial is over, and took so long here.
  void took(GuardClass of, std::int64_t ns);
  /// As many trials of the class are over as a verdict needs, and settle() is due.
  [[nodiscard]] bool complete(GuardClass of) const;
  /// What each timed trial since the last settle() took, host and HiPS in turn; as many on all ranks.
  std::span<std::int64_t> samples(GuardClass of);
  /// The verdict, from samples() of the slowest rank in each trial. The host wins only by more than 5 % and
  /// by more than the samples scatter, kHostWins times in a row: a tie is HiPS'. Null: the host has not won
  /// often enough yet, and trials go on.
  const GuardVerdict* settle(GuardClass of);

  /// A verdict of another run.
  void set(GuardClass of, const GuardVerdict& verdict);
  [[nodiscard]] const std::map<GuardClass, GuardVerdict>& verdicts() const { return verdicts_; }
  /// Trials that are over, by class without a verdict.
  [[nodiscard]] std::map<GuardClass, int> unfinished() const;

 private:
  struct Trials {
    int calls = 0, host_wins = 0;
    std::vector<std::int64_t> samples;
  };

  std::array<std::array<Way, GuardClass::kNumSizes>, GuardKind::kNum> ways_;
  std::map<GuardClass, Trials> trials_;
  std::map<GuardClass, GuardVerdict> verdicts_;
};

}  // namespace hips::mpi
