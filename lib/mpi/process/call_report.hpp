#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/mpi/tuning/guard.hpp"

namespace hips::mpi {

/// Counts of calls that HiPS executed.
struct CallTally {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::int64_t time_ns = 0;
  std::uint64_t nonblocking = 0;  ///< non-blocking calls among them
  std::uint64_t starts = 0;       ///< starts of persistent requests among them

  CallTally& operator+=(const CallTally& other) {
    calls += other.calls;
    bytes += other.bytes;
    time_ns += other.time_ns;
    nonblocking += other.nonblocking;
    starts += other.starts;
    return *this;
  }
};

/// Blocking calls of one class on this rank.
struct ClassTime {
  std::uint64_t by_hips = 0, by_native = 0;
  std::int64_t hips_ns = 0, native_ns = 0;
  /// What HiPS saved in the calls before the last decision, how long those took, and what part of its time a call saves by that
  /// decision. A later decision says nothing of the calls before it. The times of a decision are those of the slowest rank, so only
  /// their ratio says something of this one's.
  std::int64_t saved_ns = 0, compared_ns = 0;
  std::optional<double> lead{};

  static double lead_of(const TuningDecision& decision) {
    return decision.hips_ns > 0
               ? static_cast<double>(decision.native_ns) / static_cast<double>(decision.hips_ns) - 1
               : 0;
  }
  void note_decision(const TuningDecision& decision) {
    saved_ns += std::llround(static_cast<double>(hips_ns - compared_ns) * lead.value_or(lead_of(decision)));
    compared_ns = hips_ns;
    lead = lead_of(decision);
  }

  ClassTime& operator+=(const ClassTime& other) {
    by_hips += other.by_hips;
    by_native += other.by_native;
    hips_ns += other.hips_ns;
    native_ns += other.native_ns;
    return *this;
  }
};
using ClassTimes = std::map<CallClass, ClassTime>;

/// What HIPS_MPI_REPORT prints: how long the program was in collectives and what HiPS saved, which calls of this rank it took, by
/// communicator, operation and size, and which it delegated to native MPI, by reason.
///
/// These are the counts of one rank: MPI_Finalize leaves no safe moment to gather those of others, and
/// whatever decides about a call is equal on all ranks of its communicator by MPI's rules.
///
/// Threads  any.
class CallReport {
 public:
  /// Adds the calls of a communicator. Communicators that look alike in print are summed, so that a program
  /// that makes a million of them gets a short report.
  void add_taken(const std::string& comm_name, int comm_size, const std::string& plan,
                 const CallTally& tally);
  void add_delegated(const std::string& reason, std::uint64_t calls = 1);
  /// Adds the time of calls that native MPI executed and that have no class.
  void add_native_time(std::int64_t ns);
  /// Adds the time in which ranks compared arguments before a trial, and times after the last one of a class. The latter is no time of
  /// a program without HiPS; in the former it would wait for the same ranks.
  void add_trial_time(std::int64_t compared_ns, std::int64_t decided_ns);
  /// Adds a non-blocking call of native MPI, whose time is not known.
  void add_untimed();
  /// Adds the set-up of a communicator.
  void add_set_up(std::int64_t ns);
  /// The time from MPI_Init to now.
  void set_run_time(std::int64_t ns);
  /// The guard's mode in this job: "on".
  void set_guard(const std::string& mode);
  /// Adds the calls of a communicator by class, and what its guard decided; null: it had none yet. Of communicators that look
  /// alike the last decision is shown.
  void add_classes(const std::string& comm_name, int comm_size, const ClassTimes& times, const Guard* guard);

  /// The report as text, each line with its newline. `native` is name and version of native MPI.
  [[nodiscard]] std::string text(const std::string& native, int rank, int size) const;
  /// The same, and every class, as a JSON object. Times are in seconds.
  [[nodiscard]] std::string json(const std::string& native, int rank, int size) const;

 private:
  using CommPlan = std::tuple<std::string, int, std::string>;
  using CommClass = std::tuple<std::string, int, CallClass>;
  struct ClassEntry {
    ClassTime time;
    std::optional<TuningDecision> decision;
    int num_trials = 0;  ///< while it is undecided
    std::int64_t saved_ns = 0;
  };
  struct Totals {
    CallTally taken;
    std::uint64_t delegated = 0;
    std::int64_t native_ns = 0, trials_ns = 0, saved_ns = 0;
    bool is_compared = false;  ///< some class of HiPS has been timed beside native MPI
    [[nodiscard]] std::int64_t collectives_ns() const { return taken.time_ns + native_ns + trials_ns; }
  };
  [[nodiscard]] Totals totals() const;
  [[nodiscard]] std::string summary(const Totals& totals) const;
  [[nodiscard]] std::vector<std::pair<CommClass, ClassEntry>> classes_by_time() const;

  mutable std::mutex mutex_;
  std::map<CommPlan, CallTally> taken_;
  std::map<std::string, std::uint64_t> delegated_;
  std::map<CommClass, ClassEntry> classes_;
  std::int64_t other_native_ns_ = 0, set_up_ns_ = 0, compared_ns_ = 0, decided_ns_ = 0, run_ns_ = 0;
  std::uint64_t num_set_up_ = 0, num_untimed_ = 0;
  std::string guard_mode_ = "off";
};

}  // namespace hips::mpi
