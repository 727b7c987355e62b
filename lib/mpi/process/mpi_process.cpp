#include "lib/mpi/process/mpi_process.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/base/log.hpp"
#include "lib/base/os/replace_file.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/setup/spare_communicators.hpp"
#include "lib/comm/setup/topology_choice.hpp"
#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/native/progress_hook.hpp"
#include "lib/mpi/process/preload.hpp"
#include "lib/mpi/requests/request_table.hpp"

namespace hips::mpi {
namespace {

std::mutex g_making;
/// The one object; also once it is inactive.
std::atomic<MpiProcess*> g_process{nullptr};
std::atomic<bool> g_inactive{false};

/// A duplicate starts without a record and gets its own at its first collective.
int do_not_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

std::string version_of_native() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  native_mpi()->Get_library_version(text, &length);
  return native_version_of({text, static_cast<std::size_t>(length)});
}

}  // namespace

MpiProcess* MpiProcess::make_first() {
  if (g_inactive.load(std::memory_order_acquire) || !native_mpi()) return nullptr;
  int initialised = 0, finalised = 0;
  native_mpi()->Initialized(&initialised);
  native_mpi()->Finalized(&finalised);
  if (!initialised || finalised) return nullptr;
  const std::lock_guard lock(g_making);
  if (g_process.load() == nullptr) {
    g_process.store(new MpiProcess, std::memory_order_release);
    s_active.store(g_process.load(), std::memory_order_release);
  }
  return s_active.load();
}

void MpiProcess::begin() {
  try {
    if (MpiProcess* const process = active()) process->agree();
  } catch (const std::exception&) {
    // Without memory: the first collective meets that again, and can tell the program.
  }
}

MpiProcess& MpiProcess::instance() {
  return *g_process.load(std::memory_order_acquire);
}

void MpiProcess::deactivate() {
  g_inactive.store(true, std::memory_order_release);
  s_active.store(nullptr, std::memory_order_release);
}

MpiProcess::MpiProcess() : config_(load_process_config()), begin_ns_(SystemClock::instance().now_ns()) {
  // A child that starts an MPI program of its own must not inherit the interposer.
  leave_preload();
  pthread_atfork(nullptr, nullptr, [] { deactivate(); });
  // Memory is given out before there is a communicator.
  comm::guard_against_fork();
  comm::SpareCommunicators::process().stay();

  const NativeMpi& mpi = *native_mpi();
  mpi.Comm_rank(mpi.world, &world_rank_);
  mpi.Comm_size(mpi.world, &world_size_);
  log::configure(config_.config.log, world_rank_);
  comm::set_job(world_rank_, world_size_);
  native_version_ = version_of_native();
  // Absolute, because the program may change its working directory before the end.
  std::error_code no_folder;
  // Whether decisions are kept does not depend on where the ranks are.
  table_.emplace(guard_mode(true).uses_table || guard_mode(false).uses_table
                     ? std::filesystem::absolute(config_.config.guard_table, no_folder).string()
                     : std::string(),
                 world_rank_ == 0);
  if (!config_.config.mpi_report_file.empty())
    report_file_ = std::filesystem::absolute(config_.config.mpi_report_file, no_folder).string();
  int level = MPI_THREAD_SINGLE;
  mpi.Query_thread(&level);
  thread_mode_ = level == MPI_THREAD_MULTIPLE ? ThreadMode::kSerialized : ThreadMode::kSingle;
  // The highest tag: a program is unlikely to use it for messages to itself, which the probe would find.
  int* tag_ub = nullptr;
  int flag = 0;
  mpi.Comm_get_attr(mpi.world, MPI_TAG_UB, static_cast<void*>(&tag_ub), &flag);
  probe_tag_ = flag && tag_ub ? *tag_ub : 32767;

  mpi.Comm_create_keyval(do_not_copy, on_comm_free, &comm_keyval_, nullptr);
  // MPI_Finalize deletes the attributes of MPI_COMM_SELF first, while everything still works.
  mpi.Comm_create_keyval(do_not_copy, on_finalize, &self_keyval_, nullptr);
  mpi.Comm_set_attr(mpi.self, self_keyval_, this);
}

Result<AdoptionTerms> MpiProcess::agree_on(MPI_Comm comm, int size) {
  bool is_wrong = !config_.status.ok();
  if (!is_wrong && config_.config.topology) {
    std::vector<Rank> world(static_cast<std::size_t>(world_size_));
    std::iota(world.begin(), world.end(), 0);
    is_wrong = !comm::choose_topology(config_.config.topology, world, world_size_, "MPI_COMM_WORLD");
  }
  const bool one_thread = thread_mode_ == ThreadMode::kSingle;
  auto terms =
      agree_on_adoption(comm, size, config_.config, is_wrong, one_thread,
                        one_thread && config_.config.progress_thread.value_or(!native_has_progress_hook()));
  if (terms) is_on_one_node_ = terms->one_node;
  return terms;
}

void MpiProcess::agree() {
  if (terms_ || world_size_ == 1) return;
  // An error is native MPI's, and the program will meet it again.
  if (auto terms = agree_on(native_mpi()->world, world_size_)) terms_ = *terms;
}

int MpiProcess::on_comm_free(MPI_Comm, int, void* value, void*) {
  if (MpiProcess* process = g_process.load()) process->remove(static_cast<CommRecord*>(value));
  return MPI_SUCCESS;
}

int MpiProcess::on_finalize(MPI_Comm, int, void* value, void*) {
  static_cast<MpiProcess*>(value)->shut_down();
  return MPI_SUCCESS;
}

void MpiProcess::shut_down() {
  deactivate();
  remove_progress_hook();
  // Usually these are persistent requests that were never freed. A program that ends while calls are
  // outstanding is wrong, but its peers may still need them: they are completed.
  RequestTable::process().remove_all([](MpiRequest& request) { request.wait(); });
  const std::lock_guard lock(mutex_);
  // The records themselves are destroyed when native MPI frees their communicators, or never.
  for (const auto& [address, record] : records_) record->end(*this);
  met_.clear();
  comm::SpareCommunicators::process().end();
  if (world_rank_ == 0) {
    const std::lock_guard table_lock(table_mutex_);
    table_->save();
  }
  if (!reports() || world_rank_ != 0) return;
  report_.set_guard(guard_mode(is_on_one_node_).text);
  report_.set_run_time(SystemClock::instance().now_ns() - begin_ns_);
  const std::string text = report_.text(native_version_, world_rank_, world_size_);
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  if (report_file_.empty()) return;
  if (const Status status =
          replace_file(report_file_, report_.json(native_version_, world_rank_, world_size_));
      !status.ok())
    log::error(log::Subsystem::kMpi, "report: {}: {}", report_file_, status.message);
}

bool MpiProcess::knows_decisions() {
  const std::lock_guard lock(table_mutex_);
  return !of_this_run_.decisions().empty() || !table_->table().decisions().empty();
}

std::map<CallClass, TuningDecision> MpiProcess::known_decisions(const TuningScope& scope) {
  const std::lock_guard lock(table_mutex_);
  std::map<CallClass, TuningDecision> known;
  for (const GuardTable* const table :
       std::initializer_list<const GuardTable*>{&of_this_run_, &table_->table()})
    for (const auto& [key, decision] : table->decisions())
      if (key.first == scope) known.emplace(key.second, decision);
  return known;
}

void MpiProcess::keep_decision(const TuningScope& scope, CallClass of, const TuningDecision& decision) {
  const std::lock_guard lock(table_mutex_);
  of_this_run_.add({scope, of}, decision);
  if (world_rank_ == 0) table_->add({scope, of}, decision);
}

void MpiProcess::progress_native() const {
  const NativeMpi& mpi = *native_mpi();
  int flag = 0;
  mpi.Iprobe(MPI_ANY_SOURCE, probe_tag_, mpi.probed, &flag, MPI_STATUS_IGNORE);
}

CommRecord& MpiProcess::make_record() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) {
    auto record = std::make_shared<CommRecord>();
    CommRecord* const address = record.get();
    return *records_.emplace(address, std::move(record)).first->second;
  }
  const auto inserted = records_.insert(std::move(spare_.back()));
  spare_.pop_back();
  return *inserted.position->second;
}

void MpiProcess::remove(CommRecord* record) {
  decltype(records_)::node_type last;
  {
    const std::lock_guard lock(mutex_);
    last = records_.extract(record);
    if (last.empty()) return;
  }
  s_num_removed.fetch_add(1, std::memory_order_acq_rel);
  last.mapped()->end(*this);
  if (!last.mapped()->renew()) return;
  const std::lock_guard lock(mutex_);
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(last));
}

}  // namespace hips::mpi
