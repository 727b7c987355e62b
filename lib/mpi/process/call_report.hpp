#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

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

/// What HIPS_MPI_REPORT=1 prints: which calls of this rank HiPS took, by communicator, and which it delegated
/// to native MPI, by reason.
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
  /// The guard's mode in this job: "on".
  void set_guard(const std::string& mode);
  /// Adds what the guard decided on a communicator; of communicators that look alike, the last one's times
  /// are shown.
  void add_guard(const std::string& comm_name, int comm_size, const Guard& guard);

  /// The report as text, each line with its newline. `native` is name and version of native MPI.
  [[nodiscard]] std::string text(const std::string& native, int rank, int size) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, int, std::string>, CallTally> taken_;
  std::map<std::string, std::uint64_t> delegated_;
  std::string guard_mode_ = "off";
  std::map<std::tuple<std::string, int, CallClass, TuningChoice>, std::string> guard_;
};

}  // namespace hips::mpi
