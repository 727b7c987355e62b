#include "lib/mpi/comm_record.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/agreement.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/wire.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/host_progress.hpp"
#include "lib/mpi/preload_tls.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/topology_choice.hpp"
#include "lib/mpi/trial.hpp"

namespace hips::mpi {
namespace {

/// The bootstrap's one collective, over the host; `context` is the communicator.
int host_allgather(void* context, const void* send, void* recv, std::size_t bytes) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  const Host& mpi = *host();
  const int count = static_cast<int>(bytes);
  return mpi.Allgather(send, count, mpi.byte_type, recv, count, mpi.byte_type,
                       from_context<MPI_Comm>(context));
}

Result<std::unique_ptr<comm::Bootstrap>> bootstrap_over(MPI_Comm comm, int rank, int size) {
  hips_bootstrap_t callbacks{};
  callbacks.struct_size = sizeof callbacks;
  callbacks.rank = rank;
  callbacks.size = size;
  callbacks.allgather = host_allgather;
  callbacks.context = to_context(comm);
  return comm::make_callback_bootstrap(callbacks);
}

/// The members' ranks in MPI_COMM_WORLD, in order; -1 where one is not in it (MPI_Comm_spawn).
std::vector<Rank> world_ranks_of(MPI_Comm comm, int size) {
  const Host& mpi = *host();
  std::vector<int> own(static_cast<std::size_t>(size)), in_world(own.size(), -1);
  std::iota(own.begin(), own.end(), 0);
  MPI_Group members{}, world{};
  mpi.Comm_group(comm, &members);
  mpi.Comm_group(mpi.world, &world);
  mpi.Group_translate_ranks(members, size, own.data(), world, in_world.data());
  mpi.Group_free(&members);
  mpi.Group_free(&world);
  std::vector<Rank> ranks;
  for (const int rank : in_world) ranks.push_back(rank == MPI_UNDEFINED ? -1 : rank);
  return ranks;
}

/// The name that the program gave; Open MPI's own names hold a number and would make every duplicate look
/// different in the report.
std::string name_of(MPI_Comm comm) {
  char text[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  host()->Comm_get_name(comm, text, &length);
  const std::string_view name(text, static_cast<std::size_t>(length));
  if (name.empty() || name.starts_with("MPI COMMUNICATOR ")) return "unnamed communicator";
  return std::string(name);
}

/// One warning for each process: a program that lacks something makes more than one communicator.
void warn_of_host(const std::string& text) {
  static std::atomic<bool> has_warned{false};
  if (!has_warned.exchange(true)) log::warn(log::Subsystem::kMpi, "the host carries calls of {}", text);
}

/// What existing() found last. Handles are reused, but not before the delete callback has ended the record,
/// which changes the number.
struct Found {
  MPI_Comm comm;
  CommRecord* record;
  std::uint64_t num_removed;
};
thread_local Found t_found HIPS_TLS_OF_PRELOADED{};

[[gnu::noinline]] CommRecord* find(Process& process, MPI_Comm comm, std::uint64_t num_removed) {
  void* value = nullptr;
  int flag = 0;
  if (host()->Comm_get_attr(comm, process.comm_keyval(), static_cast<void*>(&value), &flag) != MPI_SUCCESS ||
      !flag)
    return nullptr;
  t_found = {comm, static_cast<CommRecord*>(value), num_removed};
  return t_found.record;
}

}  // namespace

CommRecord* CommRecord::existing(Process& process, MPI_Comm comm) {
  const std::uint64_t num_removed = process.num_removed();
  if (t_found.record != nullptr && t_found.comm == comm && t_found.num_removed == num_removed)
    return t_found.record;
  return find(process, comm, num_removed);
}

CommRecord* CommRecord::of(Process& process, MPI_Comm comm) {
  CommRecord* const record = existing(process, comm);
  return record != nullptr ? record : make(process, comm);
}

CommRecord* CommRecord::make(Process& process, MPI_Comm comm) {
  const Host& mpi = *host();
  int is_inter = 0;
  if (mpi.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return nullptr;
  auto record = std::make_shared<CommRecord>();
  record->comm_ = comm;
  record->counts_ = process.reports();
  record->name_ = name_of(comm);
  if (is_inter)
    record->declined_ = "inter-communicator";
  else
    record->set_up(process, comm);
  if (mpi.Comm_set_attr(comm, process.comm_keyval(), record.get()) != MPI_SUCCESS) return nullptr;
  process.add(record);
  return record.get();
}

void CommRecord::set_up(Process& process, MPI_Comm comm) {
  const Host& mpi = *host();
  mpi.Comm_rank(comm, &rank_);
  mpi.Comm_size(comm, &size_);
  if (size_ == 1) {
    declined_ = "communicator of 1 rank";
    return;
  }
  // What MPI_Comm_spawn starts is not under `hips run`, and may be on the other side of the exchanges to
  // come.
  const std::vector<Rank> world_ranks = world_ranks_of(comm, size_);
  if (std::ranges::find(world_ranks, -1) != world_ranks.end()) {
    declined_ = "communicator with processes of another MPI_COMM_WORLD";
    return;
  }

  auto bootstrap = bootstrap_over(comm, rank_, size_);
  if (!bootstrap) {
    failure_ = bootstrap.error();
    return;
  }

  // All meet before any goes on: a variable may be set on some hosts only.
  const LoadedConfig& loaded = process.config();
  auto choice = choose_topology(loaded.config.topology, world_ranks, process.world_size());
  const Status mine = !loaded.status.ok() ? loaded.status : choice ? Status::success() : choice.error();
  failure_ = comm::agree(**bootstrap, mine);
  if (!failure_.ok()) return;

  options_.topology = choice->spec;
  options_.is_part = !choice->is_users;
  options_.name = name_;
  options_.thread_mode = process.thread_mode();
  options_.progress_thread = !host_has_progress_hook();
  options_.progress = [&process] { process.progress_host(); };
  auto created = comm::Communicator::create(**bootstrap, options_);
  // create() names this rank by its place in the new communicator; messages of a job are sorted by the
  // world's.
  log::configure(loaded.config.log, process.world_rank());
  if (created) {
    communicator_ = std::move(*created);
    failure_ = set_up_guard(process, **bootstrap);
    return;
  }
  // create() gives every rank the same error, so all of them decide alike.
  const Status& error = created.error();
  if (error.code == Code::kUnsupported || (!choice->is_users && error.code == Code::kInvalidArgument)) {
    declined_ = fmt::format("{} of {} ranks: {}", name_, size_, error.message);
    // A part of the job may be left to the host by design. Where all of it is, whoever started it expects
    // something else; all ranks know, and one says so.
    if (size_ == process.world_size() && rank_ == 0) warn_of_host(declined_);
    return;
  }
  declined_ = shortage(error);
  if (declined_.empty()) failure_ = error;
}

Status CommRecord::set_up_guard(Process& process, comm::Bootstrap& bootstrap) {
  const GuardMode& mode = process.guard_mode();
  comm::ByteWriter writer;
  writer.put_text(comm::this_process().host_key);
  comm::put_terms(writer,
                  {{"guard (HIPS_GUARD)", mode.text}, {"guard's table", mode.uses_table ? "one" : "none"}});
  auto all = bootstrap.allgather(writer.blob());
  if (!all) return all.error();
  std::vector<std::string> hosts;
  std::vector<comm::Terms> terms;
  for (const comm::Blob& blob : *all) {
    comm::ByteReader reader(blob);
    hosts.push_back(reader.get_text());
    terms.push_back(comm::get_terms(reader));
  }
  if (Status status = comm::compare_terms(terms); !status.ok()) return status;
  guard_ = Guard(mode.tries);
  place_ = {hosts_text(hosts), communicator_->carrier(), process.host_version()};
  std::ranges::replace(place_.host_mpi, ' ', '_');
  if (!mode.uses_table) return Status::success();

  // What rank 0 knows counts: the others may have another file, or none.
  const std::map<GuardClass, GuardVerdict> known =
      rank_ == 0 ? process.known_verdicts(place_) : std::map<GuardClass, GuardVerdict>();
  return share_verdicts(*communicator_, known, guard_);
}

Result<std::unique_ptr<comm::Communicator>> CommRecord::make_another(Process& process) const {
  auto bootstrap = bootstrap_over(comm_, rank_, size_);
  if (!bootstrap) return hips::fail(bootstrap.error());
  auto created = comm::Communicator::create(**bootstrap, options_);
  log::configure(process.config().config.log, process.world_rank());
  return created;
}

std::string CommRecord::shortage(const Status& error) const {
  if (error.code != Code::kOutOfMemory && error.code != Code::kSystem) return {};
  std::string text = fmt::format("{} of {} ranks: {}", name_, size_, error.message);
  warn_of_host(text);
  return text;
}

std::unique_ptr<comm::Request> CommRecord::take_spare() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return nullptr;
  auto call = std::move(spare_.back());
  spare_.pop_back();
  return call;
}

void CommRecord::keep_spare(std::unique_ptr<comm::Request> call) {
  // A program that has had a thousand calls under way may never have so many again.
  constexpr std::size_t kMostSpare = 64;
  const std::lock_guard lock(mutex_);
  if (!has_ended_ && spare_.size() < kMostSpare) spare_.push_back(std::move(call));
}

void CommRecord::count(const Tally& tally) {
  const std::lock_guard lock(mutex_);
  if (reports_to_ != nullptr)
    reports_to_->report().add_taken(name_, size_, communicator_->describe(), tally);
  else
    tally_ += tally;
}

void CommRecord::end(Process& process) {
  comm_ = host()->world;
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  spare_.clear();
  if (!communicator_) return;
  if (process.reports()) {
    reports_to_ = &process;
    process.report().add_taken(name_, size_, communicator_->describe(), std::exchange(tally_, {}));
    process.report().add_guard(name_, size_, guard_);
  }
  if (process.guard_mode().uses_table) process.keep_verdicts(place_, guard_.verdicts());
  // A request that is under way holds the record, and with it the communicator, until it has ended.
  if (weak_from_this().use_count() <= 1) communicator_.reset();
}

}  // namespace hips::mpi
