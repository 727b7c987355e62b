#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/sections.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/mpi/communicators/met_processes.hpp"
#include "lib/mpi/process/call_report.hpp"
#include "lib/mpi/tuning/adoption.hpp"
#include "lib/mpi/tuning/adoption_terms.hpp"
#include "lib/mpi/tuning/guard.hpp"
#include "lib/mpi/tuning/guard_table.hpp"

namespace hips::mpi {

class MpiProcess;

/// The interposer's data of an MPI communicator. It is stored as an attribute of the communicator, because MPI
/// reuses handles.
///
/// Threads  one call at a time per communicator, as MPI requires of collectives; different ones concurrently.
class CommRecord : public std::enable_shared_from_this<CommRecord> {
 public:
  /// Makes the record of `comm`, which has none (record_of()). Called by the first blocking collective other
  /// than a barrier, or by the first initialisation of a persistent one, even if HiPS does not support it: a
  /// rank that passes another type than its peers must take part in the set-up. Null if native MPI does not know
  /// the communicator; native MPI reports that itself.
  ///
  /// The record waits for adopt(), which may be due at once (AdoptionTerms). Local, but where the terms are not known yet, as
  /// they are after MPI_Init.
  static CommRecord* make(MpiProcess& process, MPI_Comm comm);

  /// True until adopt(): native MPI executes the calls.
  [[nodiscard]] bool waits() const { return waits_; }
  /// Counts a call that native MPI has executed while waits(), with the size of what it moved where HiPS could have
  /// executed it; a blocking one with its class, if other communicators of the processes may have decided about it.
  void note_waiting(std::optional<std::uint64_t> bytes = std::nullopt,
                    const std::optional<CallClass>& of = {}) {
    ++num_waiting_;
    if (bytes && !(of && tuning_ != nullptr && is_given_to_native(*of))) adoption_.add(*bytes);
  }
  /// True when the next call is the time to adopt the communicator: on all ranks at the same call.
  [[nodiscard]] bool is_due(MpiProcess& process) {
    if (adoption_.is_due_if_met(size_)) [[unlikely]]
      look_for_meeting(process);
    return adoption_.is_due();
  }
  /// Sets up the communicator of HiPS. Collective. Only while waits().
  void adopt(MpiProcess& process);

  /// The communicator of HiPS that executes the calls. Null: native MPI executes them, or failure() is set.
  [[nodiscard]] comm::Communicator* communicator() const { return usable_; }
  /// The error of a failed set-up or of fail(); ok otherwise.
  [[nodiscard]] const Status& failure() const { return failure_; }
  /// Why native MPI executes all calls on this communicator; "" if it does not.
  [[nodiscard]] const std::string& unsupported() const { return unsupported_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  /// As in AdoptionTerms.
  [[nodiscard]] bool computes_elsewhere() const { return terms_.computes_elsewhere; }
  [[nodiscard]] const TuningScope& scope() const { return scope_; }
  /// Decides who executes the calls that HiPS could. Not while waits().
  [[nodiscard]] Guard& guard() { return *guard_; }
  /// All ranks have decided: later communicators of the same processes start with it.
  void note_decision(CallClass of, const TuningDecision& decision) {
    if (tuning_ != nullptr) tuning_->decisions[of] = decision;
    if (counts_) class_times_[of].note_decision(decision);
  }
  /// Ranks have passed different arguments, and know it at the same call: native MPI executes every later one. Their outstanding
  /// requests remain with HiPS.
  void leave_hips();
  /// True if this rank has to leave_hips() after this error of its last call of HiPS, as every rank does at the call in which they
  /// disagree. Not where requests have been made, which end in any order.
  [[nodiscard]] bool leaves_after(const Status& status) const {
    return status.code == Code::kMismatch && status.call != 0 && !has_made_requests_ &&
           communicator_->failed_call() >= status.call;
  }
  void note_request() { has_made_requests_ = true; }

  /// Native MPI has refused a trial on this rank alone, while the others are in it: this rank's next call is for native MPI,
  /// whatever it is, as it would be without HiPS.
  void owe(CallClass trial) {
    owed_ = trial;
    usable_ = nullptr;
  }
  [[nodiscard]] bool owes() const { return owed_.has_value(); }
  /// The next call begins: records it as delegated. Returns the class of the trial.
  CallClass pay();

  /// Records that the next call goes to native MPI, for peers that wait for this rank in HiPS. `what` lives as
  /// long as the program. Only for records with a communicator.
  void note_delegated(const char* what) { communicator_->note_delegated(what); }
  void take_back_delegated() { communicator_->take_back_delegated(); }

  /// Sections of these lengths and offsets; the last ones are cached for the next call.
  std::shared_ptr<const Sections> sections(const std::vector<std::uint64_t>& counts,
                                           const std::vector<std::uint64_t>& places) {
    return sections_.of(counts, places);
  }

  /// The communicator whose error handler gets errors of requests; MPI_COMM_WORLD after this one was freed.
  [[nodiscard]] MPI_Comm comm() const { return comm_; }

  /// Makes another communicator of HiPS for the same ranks. Collective. Only for records that have one.
  ///
  /// Errors   as comm::Communicator::create().
  Result<std::unique_ptr<comm::Communicator>> make_another(MpiProcess& process) const;
  /// If create() failed for lack of memory, descriptors or similar resources: the reason why native MPI executes
  /// the calls instead, as it has its resources already. "" for other errors. Warns once.
  [[nodiscard]] std::string shortage(const Status& error) const;
  /// The request of a completed call, for reuse with new arguments; or null.
  std::unique_ptr<comm::Request> take_spare();
  void keep_spare(std::unique_ptr<comm::Request> call);

  /// True if calls are counted for the report.
  [[nodiscard]] bool counts() const { return counts_; }
  /// Also called by threads that complete requests.
  void count(const CallTally& tally);
  /// Adds the time of a blocking call for the report, where counts(); without a class: of a call that HiPS could not execute.
  void add_time(const std::optional<CallClass>& of, bool by_hips, std::int64_t ns);
  /// The same of what trials need beside the calls: CallReport::add_trial_time().
  void add_trial_time(std::int64_t compared_ns, std::int64_t decided_ns) {
    compared_ns_ += compared_ns;
    decided_ns_ += decided_ns;
  }
  /// True at the first call: each communicator prints one error.
  bool first_error() { return !std::exchange(error_printed_, true); }

  /// Adds the counts to the report, and closes the connections when no request needs them any more. Local.
  void end(MpiProcess& process);
  /// After end(): makes it as new where it has only counted calls, so that another communicator can have it. False
  /// otherwise.
  bool renew();

 private:
  /// Finds out whether HiPS may adopt the communicator, and when.
  void meet(MpiProcess& process);
  /// Whether native MPI has won the calls of this class on other communicators of the processes.
  [[nodiscard]] bool is_given_to_native(CallClass of) const;
  void set_up(MpiProcess& process);
  /// The members may have met in another communicator.
  void look_for_meeting(MpiProcess& process);
  /// Keeps the processes for communicators that are derived from them.
  void keep_meeting(MpiProcess& process, comm::Bootstrap& bootstrap, const std::vector<Rank>& world_ranks);
  /// Sets up the communicator from processes that have met, if they have.
  bool derive(MpiProcess& process, const std::vector<Rank>& world_ranks);
  /// Uses a communicator of the same ranks again that all of them have freed. Collective; false on all ranks if there is none.
  /// Only where all know the tuning of this set of processes.
  bool use_again(MpiProcess& process);
  /// Makes the guard from what is known of this set of processes, without an exchange.
  void start_tuned(MpiProcess& process);
  /// For later communicators of this set of processes.
  void keep_trials();
  /// Exchanges the guard's mode, and what is known of communicators of the same scope.
  Status set_up_guard(MpiProcess& process, comm::Bootstrap& bootstrap);
  /// Gives the guards of all ranks the decisions that rank 0 knows.
  Status learn(MpiProcess& process, comm::Bootstrap& bootstrap);

  MPI_Comm comm_{};
  std::string name_;
  int rank_ = -1, size_ = 0;
  comm::CommunicatorOptions options_;  ///< of communicator_
  std::unique_ptr<comm::Communicator> communicator_;
  comm::Communicator* usable_ = nullptr;  ///< communicator_, or null
  Status failure_;
  std::string unsupported_;
  bool waits_ = false;
  std::uint32_t num_meetings_ = 0;  ///< that are taken into account
  std::uint64_t num_waiting_ = 0;   ///< calls while it waits or waited
  Adoption adoption_;
  AdoptionTerms terms_;
  std::unique_ptr<Guard> guard_;            ///< made by set_up(): larger than all the rest
  MetProcesses::Tuning* tuning_ = nullptr;  ///< of this set of processes, where all set up in one order
  TuningScope scope_;
  bool error_printed_ = false, has_made_requests_ = false;
  std::optional<CallClass> owed_;
  SectionsCache sections_;
  bool counts_ = false;
  ClassTimes class_times_;
  std::int64_t other_native_ns_ = 0, compared_ns_ = 0, decided_ns_ = 0;

  std::mutex mutex_;                  ///< guards the following members
  MpiProcess* reports_to_ = nullptr;  ///< set by end(): counts go there afterwards
  bool has_ended_ = false;
  CallTally tally_;
  std::vector<std::unique_ptr<comm::Request>> spare_;
};

}  // namespace hips::mpi
