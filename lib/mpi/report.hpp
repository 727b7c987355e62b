#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "lib/mpi/guard.hpp"

namespace hips::mpi {

/// Calls that went one way.
struct Tally {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::int64_t time_ns = 0;
  std::uint64_t nonblocking = 0;  ///< of the calls: the non-blocking ones
  std::uint64_t starts = 0;       ///< of the calls: starts of persistent requests

  Tally& operator+=(const Tally& other) {
    calls += other.calls;
    bytes += other.bytes;
    time_ns += other.time_ns;
    nonblocking += other.nonblocking;
    starts += other.starts;
    return *this;
  }
};

/// What HIPS_MPI_REPORT=1 prints: which calls of this rank HiPS took, by communicator, and which it left to
/// the host, by reason.
///
/// These are one rank's counts: MPI_Finalize leaves no safe place to gather the others', and MPI makes
/// whatever decides about a call equal on all ranks of its communicator.
///
/// Threads  any.
class Report {
 public:
  /// Adds the calls of a communicator; those that look alike in print are summed, so that a program which
  /// makes a million communicators gets a short report.
  void add_taken(const std::string& comm_name, int comm_size, const std::string& plan, const Tally& tally);
  void add_declined(const std::string& reason);
  /// How the guard works in this job: "on".
  void set_guard(const std::string& mode);
  /// What the guard found out on a communicator; of those that look alike, the last one's times are shown.
  void add_guard(const std::string& comm_name, int comm_size, const Guard& guard);

  /// The report as text, each line with its newline. `host` names the host MPI and its version.
  [[nodiscard]] std::string text(const std::string& host, int rank, int size) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, int, std::string>, Tally> taken_;
  std::map<std::string, std::uint64_t> declined_;
  std::string guard_mode_ = "off";
  std::map<std::tuple<std::string, int, GuardClass, Way>, std::string> guard_;
};

}  // namespace hips::mpi
