#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lib/base/config/config.hpp"
#include "lib/mpi/process/call_report.hpp"
#include "lib/mpi/tuning/guard_mode.hpp"
#include "lib/mpi/tuning/guard_table_file.hpp"

namespace hips::mpi {

class CommRecord;

/// What the interposer keeps once per process: configuration, records of communicators, report.
///
/// Made between MPI_Init and MPI_Finalize, at the first call that HiPS may execute. Never destroyed: programs
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

  /// The same once active() has returned one, for functions that are called while it is active.
  static MpiProcess& instance();

  [[nodiscard]] const LoadedConfig& config() const { return config_; }
  [[nodiscard]] bool reports() const { return config_.config.mpi_report; }
  [[nodiscard]] CallReport& report() { return report_; }
  [[nodiscard]] const GuardMode& guard_mode() const { return guard_mode_; }
  [[nodiscard]] const std::string& native_version() const { return native_version_; }
  [[nodiscard]] int world_rank() const { return world_rank_; }
  [[nodiscard]] int world_size() const { return world_size_; }
  [[nodiscard]] ThreadMode thread_mode() const { return thread_mode_; }
  /// The attribute that a communicator's record is stored under.
  [[nodiscard]] int comm_keyval() const { return comm_keyval_; }

  /// Decisions of earlier runs for this scope.
  std::map<CallClass, TuningDecision> known_decisions(const TuningScope& scope);
  /// Keeps decisions of this run for later ones. Only rank 0 of MPI_COMM_WORLD keeps any, those of its own
  /// communicators.
  void keep_decisions(const TuningScope& scope, const std::map<CallClass, TuningDecision>& decisions);

  /// Lets native MPI make progress: MPI requires that a rank which is blocked in one call progresses its
  /// other messages.
  void progress_native() const;

  void add(std::shared_ptr<CommRecord> record);
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
  GuardMode guard_mode_;
  std::string native_version_;
  CallReport report_;
  int world_rank_ = -1, world_size_ = 0;
  int probe_tag_ = 0;
  ThreadMode thread_mode_ = ThreadMode::kSerialized;
  int comm_keyval_ = MPI_KEYVAL_INVALID, self_keyval_ = MPI_KEYVAL_INVALID;
  std::mutex mutex_;
  std::map<CommRecord*, std::shared_ptr<CommRecord>> records_;
  std::mutex table_mutex_;
  std::optional<GuardTableFile> table_;
};

}  // namespace hips::mpi
