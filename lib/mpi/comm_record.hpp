#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <hips/status.hpp>

#include "lib/comm/communicator.hpp"
#include "lib/mpi/guard.hpp"
#include "lib/mpi/guard_table.hpp"
#include "lib/mpi/report.hpp"

namespace hips::mpi {

class Process;

/// What hangs on an MPI communicator, as an attribute: handles are reused, so nothing is ever looked up by
/// one.
///
/// Threads  one call at a time on a communicator, as MPI asks of collectives; others at the same time.
class CommRecord : public std::enable_shared_from_this<CommRecord> {
 public:
  /// The record of `comm`, made at the first blocking collective but a barrier, or initialisation of a
  /// persistent allreduce: also by one that HiPS will not take, so that a rank which passes another type than
  /// its peers still meets them here. Collective where it is made. Null where the host does not know the
  /// communicator and will say so itself.
  static CommRecord* of(Process& process, MPI_Comm comm);
  /// The same for a call that must not wait for other ranks: null where there is no record yet.
  static CommRecord* existing(Process& process, MPI_Comm comm);

  /// Carries out the calls; null where the host does or where set-up failed.
  [[nodiscard]] comm::Communicator* communicator() const { return communicator_.get(); }
  /// Why set-up failed; ok otherwise.
  [[nodiscard]] const Status& failure() const { return failure_; }
  /// Why the host carries out all calls on this communicator; "" where it does not.
  [[nodiscard]] const std::string& declined() const { return declined_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Says who carries the calls that HiPS could.
  [[nodiscard]] Guard& guard() { return guard_; }
  /// Ranks differ in what the host would not notice: no call goes on from here.
  void fail(const Status& status) { failure_ = status; }

  /// Sections of these lengths and places; the last ones are kept for the next call.
  std::shared_ptr<const Sections> sections(const std::vector<std::uint64_t>& counts,
                                           const std::vector<std::uint64_t>& places) {
    if (!last_sections_ || !last_sections_->is_of(counts, places))
      last_sections_ = std::make_shared<const Sections>(counts, places);
    return last_sections_;
  }

  /// Whose error handler takes the errors of its requests: MPI_COMM_WORLD once it has been freed.
  [[nodiscard]] MPI_Comm comm() const { return comm_; }

  /// One more communicator of HiPS for the same ranks; collective. For records that have one.
  ///
  /// Errors   as comm::Communicator::create().
  Result<std::unique_ptr<comm::Communicator>> make_another(Process& process) const;
  /// Why the host carries the calls instead, where create() failed for lack of memory, descriptors and their
  /// like: the host has its own already. "" where it failed otherwise. Warns once.
  [[nodiscard]] std::string shortage(const Status& error) const;
  /// A call to be renewed and started, kept by an earlier one that has ended, or null.
  std::unique_ptr<comm::Request> take_spare();
  void keep_spare(std::unique_ptr<comm::Request> call);

  /// Is there a report to count for?
  [[nodiscard]] bool counts() const { return counts_; }
  /// Also from threads that complete requests.
  void count(const Tally& tally);
  /// True the first time: an error is printed once for each communicator.
  bool first_error() { return !std::exchange(error_printed_, true); }

  /// Hands the counts to the report, and says goodbye to the peers as soon as no request needs them. Local.
  void end(Process& process);

 private:
  static CommRecord* make(Process& process, MPI_Comm comm);
  void set_up(Process& process, MPI_Comm comm);
  /// Meets the others once more, with what the guard needs to know.
  Status set_up_guard(Process& process, comm::Bootstrap& bootstrap);

  MPI_Comm comm_{};
  std::string name_;
  int rank_ = -1, size_ = 0;
  comm::CommunicatorOptions options_;  ///< of communicator_
  std::unique_ptr<comm::Communicator> communicator_;
  Status failure_;
  std::string declined_;
  Guard guard_{false};
  GuardPlace place_;
  bool error_printed_ = false;
  std::shared_ptr<const Sections> last_sections_;
  bool counts_ = false;

  std::mutex mutex_;               ///< of what follows
  Process* reports_to_ = nullptr;  ///< what was counted after end()
  bool has_ended_ = false;
  Tally tally_;
  std::vector<std::unique_ptr<comm::Request>> spare_;
};

}  // namespace hips::mpi
