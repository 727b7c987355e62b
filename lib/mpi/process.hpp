#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lib/base/config.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/mpi/guard_mode.hpp"
#include "lib/mpi/guard_table.hpp"
#include "lib/mpi/report.hpp"

namespace hips::mpi {

class CommRecord;

/// What the interposer keeps once per process: the configuration, the live records, the report.
///
/// Made at the first call that HiPS could take between MPI_Init and MPI_Finalize, never destroyed: programs
/// call MPI_Finalize from exit handlers too, which may run after ours.
///
/// Threads  any.
class Process {
 public:
  /// Null while HiPS has to keep out of the way: before MPI_Init, from MPI_Finalize on, in a child of fork(),
  /// and under an MPI of another ABI.
  static Process* active();

  [[nodiscard]] const LoadedConfig& config() const { return config_; }
  [[nodiscard]] bool reports() const { return config_.config.mpi_report; }
  [[nodiscard]] Report& report() { return report_; }
  [[nodiscard]] const GuardMode& guard_mode() const { return guard_mode_; }
  [[nodiscard]] const std::string& host_version() const { return host_version_; }
  /// Verdicts of earlier runs at this place.
  std::map<GuardClass, GuardVerdict> known_verdicts(const GuardPlace& place);
  /// Keeps verdicts of this run for later ones; on rank 0 of MPI_COMM_WORLD, for communicators it is in.
  void keep_verdicts(const GuardPlace& place, const std::map<GuardClass, GuardVerdict>& verdicts);
  [[nodiscard]] int world_rank() const { return world_rank_; }
  [[nodiscard]] int world_size() const { return world_size_; }
  [[nodiscard]] ThreadMode thread_mode() const { return thread_mode_; }
  /// Under which records hang on their communicators.
  [[nodiscard]] int comm_keyval() const { return comm_keyval_; }

  /// Gives the host MPI time: MPI asks that a rank which is blocked in one call moves its other messages on.
  void progress_host() const;

  void add(std::shared_ptr<CommRecord> record);
  /// Called as the communicator is freed. The record goes with the last request that needs it.
  void remove(CommRecord* record);
  /// Changes when a record ends: what has been remembered of records holds no longer.
  [[nodiscard]] std::uint64_t num_removed() const { return num_removed_.load(std::memory_order_acquire); }

 private:
  Process();
  /// Makes it, if it is time.
  [[gnu::noinline]] static Process* first();
  /// Runs inside MPI_Finalize while MPI still works: ends all communicators and prints the report.
  void shut_down();
  static int on_finalize(MPI_Comm comm, int keyval, void* value, void* extra);

  LoadedConfig config_;
  GuardMode guard_mode_;
  std::string host_version_;
  Report report_;
  int world_rank_ = -1, world_size_ = 0;
  int probe_tag_ = 0;
  ThreadMode thread_mode_ = ThreadMode::kMultiple;
  int comm_keyval_ = MPI_KEYVAL_INVALID, self_keyval_ = MPI_KEYVAL_INVALID;
  std::mutex mutex_;
  std::map<CommRecord*, std::shared_ptr<CommRecord>> records_;
  std::atomic<std::uint64_t> num_removed_{0};
  std::mutex table_mutex_;
  std::optional<GuardTableFile> table_;
};

}  // namespace hips::mpi
