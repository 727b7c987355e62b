#include "lib/mpi/process.hpp"

#include <pthread.h>

#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "lib/base/log.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/host_progress.hpp"
#include "lib/mpi/host_version.hpp"
#include "lib/mpi/preload.hpp"
#include "lib/mpi/requests.hpp"

namespace hips::mpi {
namespace {

/// Set from MPI_Finalize on and in children: from then on every call goes to the host.
std::atomic<bool> g_inert{false};
std::atomic<Process*> g_process{nullptr};
std::mutex g_making;

/// A duplicate starts without a record; it makes its own at its first collective.
int do_not_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int on_comm_free(MPI_Comm, int, void* value, void*) {
  if (Process* process = g_process.load()) process->remove(static_cast<CommRecord*>(value));
  return MPI_SUCCESS;
}

std::string version_of_host() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  host()->Get_library_version(text, &length);
  return host_version_of({text, static_cast<std::size_t>(length)});
}

}  // namespace

Process* Process::active() {
  if (g_inert.load(std::memory_order_acquire)) return nullptr;
  if (Process* process = g_process.load(std::memory_order_acquire)) return process;
  return first();
}

Process* Process::first() {
  if (!host()) return nullptr;
  int initialised = 0, finalised = 0;
  host()->Initialized(&initialised);
  host()->Finalized(&finalised);
  if (!initialised || finalised) return nullptr;
  const std::lock_guard lock(g_making);
  if (!g_process.load()) g_process.store(new Process, std::memory_order_release);
  return g_process.load();
}

Process::Process() : config_(load_process_config()), guard_mode_(mpi::guard_mode(config_.config)) {
  // A child that starts an MPI program of its own must not inherit us.
  leave_preload();
  pthread_atfork(nullptr, nullptr, [] { g_inert.store(true); });
  // Memory is given out before there is a communicator.
  comm::guard_against_fork();

  const Host& mpi = *host();
  mpi.Comm_rank(mpi.world, &world_rank_);
  mpi.Comm_size(mpi.world, &world_size_);
  log::configure(config_.config.log, world_rank_);
  host_version_ = version_of_host();
  // Absolute, because the program may change its folder before the end.
  std::error_code no_folder;
  table_.emplace(guard_mode_.uses_table
                     ? std::filesystem::absolute(config_.config.guard_table, no_folder).string()
                     : std::string(),
                 world_rank_ == 0);
  int level = MPI_THREAD_SINGLE;
  mpi.Query_thread(&level);
  thread_mode_ = level == MPI_THREAD_MULTIPLE ? ThreadMode::kMultiple : ThreadMode::kSingle;
  // The highest tag: no program is likely to have a message to itself under it that the probe would find.
  int* tag_ub = nullptr;
  int flag = 0;
  mpi.Comm_get_attr(mpi.world, MPI_TAG_UB, static_cast<void*>(&tag_ub), &flag);
  probe_tag_ = flag && tag_ub ? *tag_ub : 32767;

  mpi.Comm_create_keyval(do_not_copy, on_comm_free, &comm_keyval_, nullptr);
  // MPI deletes the attributes of MPI_COMM_SELF first of all in MPI_Finalize, while everything still works.
  mpi.Comm_create_keyval(do_not_copy, on_finalize, &self_keyval_, nullptr);
  mpi.Comm_set_attr(mpi.self, self_keyval_, this);
}

int Process::on_finalize(MPI_Comm, int, void* value, void*) {
  static_cast<Process*>(value)->shut_down();
  return MPI_SUCCESS;
}

void Process::shut_down() {
  g_inert.store(true, std::memory_order_release);
  unhook_host_progress();
  // Persistent ones that were never freed are the usual case. A program that ends while others are under way
  // is wrong; its peers, which may still need us, are told less lies if we see them through.
  Requests::process().remove_all([](HipsRequest& request) { request.wait(); });
  const std::lock_guard lock(mutex_);
  // The records themselves go when the host frees their communicators, or stay to the end.
  for (const auto& [address, record] : records_) record->end(*this);
  if (world_rank_ == 0) {
    const std::lock_guard table_lock(table_mutex_);
    table_->save();
  }
  if (!reports() || world_rank_ != 0) return;
  report_.set_guard(guard_mode_.text);
  const std::string text = report_.text(host_version_, world_rank_, world_size_);
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

std::map<GuardClass, GuardVerdict> Process::known_verdicts(const GuardPlace& place) {
  const std::lock_guard lock(table_mutex_);
  std::map<GuardClass, GuardVerdict> known;
  for (const auto& [key, verdict] : table_->table().verdicts())
    if (key.first == place) known.emplace(key.second, verdict);
  return known;
}

void Process::keep_verdicts(const GuardPlace& place, const std::map<GuardClass, GuardVerdict>& verdicts) {
  // It alone writes the file.
  if (world_rank_ != 0) return;
  const std::lock_guard lock(table_mutex_);
  for (const auto& [of, verdict] : verdicts) table_->add({place, of}, verdict);
}

void Process::progress_host() const {
  const Host& mpi = *host();
  int flag = 0;
  mpi.Iprobe(MPI_ANY_SOURCE, probe_tag_, mpi.probed, &flag, MPI_STATUS_IGNORE);
}

void Process::add(std::shared_ptr<CommRecord> record) {
  const std::lock_guard lock(mutex_);
  CommRecord* const address = record.get();
  records_.emplace(address, std::move(record));
}

void Process::remove(CommRecord* record) {
  std::shared_ptr<CommRecord> last;
  {
    const std::lock_guard lock(mutex_);
    const auto found = records_.find(record);
    if (found == records_.end()) return;
    last = std::move(found->second);
    records_.erase(found);
  }
  num_removed_.fetch_add(1, std::memory_order_acq_rel);
  last->end(*this);
}

}  // namespace hips::mpi
