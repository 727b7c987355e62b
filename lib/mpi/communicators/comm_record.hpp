#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/sections.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/mpi/process/call_report.hpp"
#include "lib/mpi/tuning/guard.hpp"
#include "lib/mpi/tuning/guard_table.hpp"

namespace hips::mpi {

class MpiProcess;

/// What the interposer keeps for an MPI communicator, as an attribute of it: MPI uses handles again, so
/// nothing is looked up by one.
///
/// Threads  one call at a time on a communicator, as MPI requires of collectives; others at the same time.
class CommRecord : public std::enable_shared_from_this<CommRecord> {
 public:
  /// Makes the record of `comm`, which has none (record_of()). Done by the first blocking collective other
  /// than a barrier, or initialisation of a persistent one, also by one that HiPS will not execute: a rank
  /// that passes another type than its peers still takes part in the set-up. Collective. Null where native
  /// MPI does not know the communicator and reports that itself.
  static CommRecord* make(MpiProcess& process, MPI_Comm comm);

  /// Executes the calls; null where native MPI does, and where failure() says why no call can go on.
  [[nodiscard]] comm::Communicator* communicator() const { return usable_; }
  /// Why set-up failed, or fail(); ok otherwise.
  [[nodiscard]] const Status& failure() const { return failure_; }
  /// Why native MPI executes all calls on this communicator; "" where it does not.
  [[nodiscard]] const std::string& unsupported() const { return unsupported_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  /// Decides who executes the calls that HiPS could.
  [[nodiscard]] Guard& guard() { return guard_; }
  /// Ranks passed arguments that differ and native MPI would not detect: every later call fails.
  void fail(const Status& status) {
    failure_ = status;
    usable_ = nullptr;
  }

  /// Records that the next call goes to native MPI, so that a peer that waits for this rank in HiPS finds
  /// out. `what` lives as long as the program. For records with a communicator.
  void note_delegated(const char* what) { communicator_->note_delegated(what); }

  /// Sections of these lengths and places; the last ones are kept for the next call.
  std::shared_ptr<const Sections> sections(const std::vector<std::uint64_t>& counts,
                                           const std::vector<std::uint64_t>& places) {
    if (!last_sections_ || !last_sections_->is_of(counts, places))
      last_sections_ = std::make_shared<const Sections>(counts, places);
    return last_sections_;
  }

  /// The communicator whose error handler gets errors of its requests: MPI_COMM_WORLD once it has been freed.
  [[nodiscard]] MPI_Comm comm() const { return comm_; }

  /// Makes one more communicator of HiPS for the same ranks; collective. For records that have one.
  ///
  /// Errors   as comm::Communicator::create().
  Result<std::unique_ptr<comm::Communicator>> make_another(MpiProcess& process) const;
  /// Why native MPI executes the calls instead, where create() failed for lack of memory, descriptors and
  /// similar resources: native MPI has its own already. "" where it failed otherwise. Warns once.
  [[nodiscard]] std::string shortage(const Status& error) const;
  /// A finished call of an earlier request, to be given new arguments and started again, or null.
  std::unique_ptr<comm::Request> take_spare();
  void keep_spare(std::unique_ptr<comm::Request> call);

  /// Whether calls are counted for a report.
  [[nodiscard]] bool counts() const { return counts_; }
  /// Also called by threads that complete requests.
  void count(const CallTally& tally);
  /// True the first time: an error is printed once for each communicator.
  bool first_error() { return !std::exchange(error_printed_, true); }

  /// Hands the counts to the report, and shuts the connections down as soon as no request needs them. Local.
  void end(MpiProcess& process);

 private:
  void set_up(MpiProcess& process);
  /// Exchanges what the guard needs to know.
  Status set_up_guard(MpiProcess& process, comm::Bootstrap& bootstrap);

  MPI_Comm comm_{};
  std::string name_;
  int rank_ = -1, size_ = 0;
  comm::CommunicatorOptions options_;  ///< of communicator_
  std::unique_ptr<comm::Communicator> communicator_;
  comm::Communicator* usable_ = nullptr;  ///< communicator_, or null
  Status failure_;
  std::string unsupported_;
  Guard guard_{false};
  TuningScope scope_;
  bool error_printed_ = false;
  std::shared_ptr<const Sections> last_sections_;
  bool counts_ = false;

  std::mutex mutex_;                  ///< of what follows
  MpiProcess* reports_to_ = nullptr;  ///< what is counted after end()
  bool has_ended_ = false;
  CallTally tally_;
  std::vector<std::unique_ptr<comm::Request>> spare_;
};

}  // namespace hips::mpi
