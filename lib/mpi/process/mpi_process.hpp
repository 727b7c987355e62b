#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/config/config.hpp"
#include "lib/mpi/communicators/met_processes.hpp"
#include "lib/mpi/process/call_report.hpp"
#include "lib/mpi/tuning/adoption_terms.hpp"
#include "lib/mpi/tuning/guard_mode.hpp"
#include "lib/mpi/tuning/guard_table_file.hpp"

namespace hips::mpi {

class CommRecord;

/// What the interposer keeps once per process: configuration, records of communicators, report.
///
/// Made inside MPI_Init; where that passes us by, at the first call that HiPS may execute. Never destroyed: programs
/// also call MPI_Finalize from exit handlers, which may run after ours.
///
/// Threads  any.
class MpiProcess {
 public:
  /// Null while native MPI has to get every call: before MPI_Init, from MPI_Finalize on, in a child of
  /// fork(), and under an MPI of another ABI.
  static MpiProcess* active() {
    MpiProcess* const process = s_active.load(std::memory_order_acquire);
    return process != nullptr ? process : make_first();
  }

  /// Called inside MPI_Init, after native MPI's: makes the object, and agree(). Never throws.
  static void begin();

  /// The same once active() has returned one, for functions that are called while it is active.
  static MpiProcess& instance();

  [[nodiscard]] const LoadedConfig& config() const { return config_; }
  [[nodiscard]] bool reports() const { return config_.config.mpi_report; }
  [[nodiscard]] CallReport& report() { return report_; }
  /// What all ranks of MPI_COMM_WORLD agreed on in agree(). Null: it was not called on all, since the program's MPI_Init
  /// passed us by (a tool may call PMPI_Init).
  [[nodiscard]] const AdoptionTerms* terms() const { return terms_ ? &*terms_ : nullptr; }
  /// As agree_on_adoption(), of this process's settings.
  Result<AdoptionTerms> agree_on(MPI_Comm comm, int size);
  /// Inside MPI_Init, which all ranks call. Collective over MPI_COMM_WORLD.
  void agree();
  /// The guard's mode where the ranks that are asked about are on one node, or not.
  [[nodiscard]] GuardMode guard_mode(bool one_node) const { return guard_mode_of(config_.config, one_node); }
  [[nodiscard]] const std::string& native_version() const { return native_version_; }
  [[nodiscard]] int world_rank() const { return world_rank_; }
  [[nodiscard]] int world_size() const { return world_size_; }
  [[nodiscard]] ThreadMode thread_mode() const { return thread_mode_; }
  [[nodiscard]] MetProcesses& met() { return met_; }
  /// The attribute that a communicator's record is stored under.
  [[nodiscard]] int comm_keyval() const { return comm_keyval_; }

  /// Whether known_decisions() may find any.
  bool knows_decisions();
  /// Decisions for this scope, of this run and of earlier ones, in that order.
  std::map<CallClass, TuningDecision> known_decisions(const TuningScope& scope);
  /// Keeps a decision for later communicators of the same scope, and for later runs; the file is that of rank 0 of MPI_COMM_WORLD.
  void keep_decision(const TuningScope& scope, CallClass of, const TuningDecision& decision);

  /// Lets native MPI make progress: MPI requires that a rank which is blocked in one call progresses its
  /// other messages.
  void progress_native() const;

  /// An empty record, which remove() or shut_down() ends.
  CommRecord& make_record();
  /// Called when the communicator is freed. The record lives until the last request that needs it has gone.
  void remove(CommRecord* record);
  /// Never 0. Changes when a record ends; whatever was remembered of records is invalid then.
  [[nodiscard]] static std::uint64_t num_removed() { return s_num_removed.load(std::memory_order_acquire); }

 private:
  MpiProcess();
  /// Makes the one object, if MPI is initialised and HiPS active.
  [[gnu::noinline]] static MpiProcess* make_first();
  /// Runs inside MPI_Finalize while MPI still works: ends all communicators and prints the report.
  void shut_down();
  static int on_comm_free(MPI_Comm comm, int keyval, void* value, void* extra);
  static int on_finalize(MPI_Comm comm, int keyval, void* value, void* extra);

  /// For MPI_Finalize and in children: every call goes to native MPI from then on.
  static void deactivate();

  static constinit inline std::atomic<MpiProcess*> s_active{nullptr};
  static constinit inline std::atomic<std::uint64_t> s_num_removed{1};

  LoadedConfig config_;
  std::int64_t begin_ns_ = 0;
  std::string report_file_;  ///< absolute; "" for none
  std::optional<AdoptionTerms> terms_;
  std::atomic<bool> is_on_one_node_{true};  ///< of the ranks that were asked last, for the report
  std::string native_version_;
  CallReport report_;
  int world_rank_ = -1, world_size_ = 0;
  int probe_tag_ = 0;
  ThreadMode thread_mode_ = ThreadMode::kSerialized;
  int comm_keyval_ = MPI_KEYVAL_INVALID, self_keyval_ = MPI_KEYVAL_INVALID;
  MetProcesses met_;
  std::mutex mutex_;
  std::map<CommRecord*, std::shared_ptr<CommRecord>> records_;
  /// Records that were only counters. Programs that split communicators by the thousand need no memory for each.
  std::vector<decltype(records_)::node_type> spare_;
  static constexpr std::size_t kMostSpare = 16;
  std::mutex table_mutex_;
  std::optional<GuardTableFile> table_;
  GuardTable of_this_run_;
};

}  // namespace hips::mpi
