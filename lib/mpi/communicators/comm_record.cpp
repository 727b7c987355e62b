#include "lib/mpi/communicators/comm_record.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <new>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/spare_communicators.hpp"
#include "lib/comm/setup/topology_choice.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/native/progress_hook.hpp"
#include "lib/mpi/process/mpi_process.hpp"
#include "lib/mpi/process/windows.hpp"
#include "lib/mpi/tuning/trial.hpp"

namespace hips::mpi {
namespace {

/// The bootstrap's one collective, over native MPI; `context` is the communicator.
int native_allgather(void* context, const void* send, void* recv, std::size_t bytes) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  const NativeMpi& mpi = *native_mpi();
  const int count = static_cast<int>(bytes);
  return mpi.Allgather(send, count, mpi.byte_type, recv, count, mpi.byte_type,
                       from_context<MPI_Comm>(context));
}

Result<std::unique_ptr<comm::Bootstrap>> bootstrap_over(MPI_Comm comm, int rank, int size) {
  hips_bootstrap_t callbacks{};
  callbacks.struct_size = sizeof callbacks;
  callbacks.rank = rank;
  callbacks.size = size;
  callbacks.allgather = native_allgather;
  callbacks.context = to_context(comm);
  return comm::make_callback_bootstrap(callbacks);
}

/// The members' ranks in MPI_COMM_WORLD, in order; -1 for a member that is not in it (MPI_Comm_spawn).
std::vector<Rank> world_ranks_of(MPI_Comm comm, int size) {
  const NativeMpi& mpi = *native_mpi();
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

constexpr const char* kOtherWorld = "communicator with processes of another MPI_COMM_WORLD";

bool all_are_of_this_world(MPI_Comm comm, int size) {
  const std::vector<Rank> world_ranks = world_ranks_of(comm, size);
  return std::ranges::find(world_ranks, -1) == world_ranks.end();
}

/// The name that the program gave. Open MPI's own names hold a number, which would make every duplicate look
/// different in the report.
std::string name_of(MPI_Comm comm) {
  char text[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  native_mpi()->Comm_get_name(comm, text, &length);
  const std::string_view name(text, static_cast<std::size_t>(length));
  if (name.empty() || name.starts_with("MPI COMMUNICATOR ")) return "unnamed communicator";
  return std::string(name);
}

/// What the user says of the topology of these ranks, if it leaves the plans to HiPS: communicators with a plan of their own
/// are not derived.
std::optional<comm::TopologyChoice> free_choice(const MpiProcess& process,
                                                const std::vector<Rank>& world_ranks) {
  const LoadedConfig& loaded = process.config();
  if (!loaded.status.ok()) return std::nullopt;
  auto choice =
      comm::choose_topology(loaded.config.topology, world_ranks, process.world_size(), "MPI_COMM_WORLD");
  if (!choice || choice->spec) return std::nullopt;
  return *std::move(choice);
}

/// One warning for each process: a program that lacks a resource usually makes several communicators.
void warn_of_native(const std::string& text) {
  static std::atomic<bool> has_warned{false};
  if (!has_warned.exchange(true)) log::warn(log::Subsystem::kMpi, "native MPI executes calls of {}", text);
}

}  // namespace

CommRecord* CommRecord::make(MpiProcess& process, MPI_Comm comm) {
  const NativeMpi& mpi = *native_mpi();
  int is_inter = 0;
  if (mpi.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return nullptr;
  CommRecord& record = process.make_record();
  record.comm_ = comm;
  record.counts_ = process.reports();
  if (is_inter)
    record.unsupported_ = "inter-communicator";
  else
    record.meet(process);
  if (mpi.Comm_set_attr(comm, process.comm_keyval(), &record) == MPI_SUCCESS) return &record;
  process.remove(&record);
  return nullptr;
}

void CommRecord::meet(MpiProcess& process) {
  const NativeMpi& mpi = *native_mpi();
  mpi.Comm_rank(comm_, &rank_);
  mpi.Comm_size(comm_, &size_);
  if (counts_) name_ = name_of(comm_);
  if (size_ == 1) {
    unsupported_ = "communicator of 1 rank";
    return;
  }
  if (const AdoptionTerms* const terms = process.terms()) {
    terms_ = *terms;
  } else {
    if (!all_are_of_this_world(comm_, size_)) {
      unsupported_ = kOtherWorld;
      return;
    }
    auto agreed = process.agree_on(comm_, size_);
    if (!agreed) {
      failure_ = agreed.error();
      return;
    }
    terms_ = *agreed;
  }
  waits_ = true;
  if (!terms_.at_once) adoption_ = Adoption(size_, terms_.one_node);
}

// Processes meet in blocking collectives, and set-ups come in the same order on all of a set. So all ranks know of a meeting of all
// of them at the same call. Of others, in which only some of them were, only those know.
void CommRecord::look_for_meeting(MpiProcess& process) {
  if (tuning_ != nullptr) return;
  const std::uint32_t known = std::exchange(num_meetings_, process.met().num_meetings());
  if (known == num_meetings_) return;
  const std::vector<Rank> world_ranks = world_ranks_of(comm_, size_);
  if (!terms_.derives || !process.met().have_met(world_ranks) || !free_choice(process, world_ranks)) return;
  adoption_.note_met(size_);
  tuning_ = &process.met().tuning(world_ranks);
  // Which of the calls so far native MPI has won is not known any more.
  const auto is_native = [](const auto& one) { return one.second.winner == TuningChoice::kNative; };
  if (std::ranges::any_of(tuning_->decisions, is_native)) adoption_.begin_again();
}

// Decisions follow blocking calls, whose order is the same on all ranks of a set.
bool CommRecord::is_given_to_native(CallClass of) const {
  const auto decision = tuning_->decisions.find(of);
  return decision != tuning_->decisions.end() && decision->second.winner == TuningChoice::kNative;
}

void CommRecord::adopt(MpiProcess& process) {
  waits_ = false;
  const std::int64_t begin_ns = SystemClock::instance().now_ns();
  try {
    set_up(process);
  } catch (const std::bad_alloc&) {
    failure_ =
        Status::error(Code::kOutOfMemory, "out of memory");  // later calls are not for native MPI alone
    throw;
  }
  if (counts_) process.report().add_set_up(SystemClock::instance().now_ns() - begin_ns);
}

void CommRecord::add_time(const std::optional<CallClass>& of, bool by_hips, std::int64_t ns) {
  if (!of) {
    other_native_ns_ += ns;
    return;
  }
  ClassTime& time = class_times_[*of];
  ++(by_hips ? time.by_hips : time.by_native);
  (by_hips ? time.hips_ns : time.native_ns) += ns;
}

void CommRecord::set_up(MpiProcess& process) {
  name_ = name_of(comm_);
  // Processes that MPI_Comm_spawn starts are not under `hips run`, and would not take part in the exchanges
  // that follow.
  const std::vector<Rank> world_ranks = world_ranks_of(comm_, size_);
  if (std::ranges::find(world_ranks, -1) != world_ranks.end()) {
    guard_ = std::make_unique<Guard>(false);
    unsupported_ = kOtherWorld;
    return;
  }

  options_.name = name_;
  options_.thread_mode = process.thread_mode();
  options_.progress_thread = !native_has_progress_hook();
  options_.progress = [&process] { process.progress_native(); };
  options_.often = &has_windows();
  if (derive(process, world_ranks)) return;
  if (terms_.derives) tuning_ = &process.met().tuning(world_ranks);

  // All ranks agree before any continues: a variable may be set on some nodes only.
  const LoadedConfig& loaded = process.config();
  auto choice =
      comm::choose_topology(loaded.config.topology, world_ranks, process.world_size(), "MPI_COMM_WORLD");
  if (choice) {
    options_.topology = choice->spec;
    options_.is_part = !choice->is_users;
  } else {
    options_.refused = choice.error();
  }
  options_.may_reuse = true;
  if (tuning_ != nullptr && tuning_->is_known && use_again(process)) return;
  guard_ = std::make_unique<Guard>(false);
  auto bootstrap = bootstrap_over(comm_, rank_, size_);
  if (!bootstrap) {
    failure_ = bootstrap.error();
    return;
  }
  auto created = comm::Communicator::create(**bootstrap, options_);
  // create() names this rank by its place in the new communicator; messages of a job are sorted by the
  // world's.
  log::configure(loaded.config.log, process.world_rank());
  if (created) {
    communicator_ = std::move(*created);
    if (tuning_ != nullptr) tuning_->digest = communicator_->digest();
    if (tuning_ != nullptr && tuning_->is_known)
      start_tuned(process);
    else
      failure_ = set_up_guard(process, **bootstrap);
    if (!failure_.ok()) return;
    usable_ = communicator_.get();
    if (terms_.derives && communicator_->derives()) keep_meeting(process, **bootstrap, world_ranks);
    return;
  }
  // create() gives every rank the same error, so all of them decide alike.
  const Status& error = created.error();
  const bool was_refused = error.scope == Scope::kCommunicator;
  if (!was_refused &&
      (error.code == Code::kUnsupported || (options_.is_part && error.code == Code::kInvalidArgument))) {
    unsupported_ = fmt::format("{} of {} ranks: {}", name_, size_, error.message);
    // A part of the job may be delegated by design. Where the whole job is, the user expected something else:
    // one rank warns, since all know.
    if (size_ == process.world_size() && rank_ == 0) warn_of_native(unsupported_);
    return;
  }
  unsupported_ = shortage(error);
  if (unsupported_.empty()) failure_ = error;
}

void CommRecord::keep_meeting(MpiProcess& process, comm::Bootstrap& bootstrap,
                              const std::vector<Rank>& world_ranks) {
  // A communicator of its own, until MPI_Finalize. Others may have called, and failed the first one, by now.
  Result<std::unique_ptr<comm::Communicator>> kept = nullptr;
  try {
    std::vector<Rank> all(world_ranks.size());
    std::iota(all.begin(), all.end(), 0);
    kept = communicator_->derive(all, communicator_->next_derivation(), 0, options_,
                                 comm::Communicator::IfFailed::kDerive);
  } catch (const std::bad_alloc&) {
    kept = hips::fail(Status::error(Code::kOutOfMemory, "out of memory"));
  }
  // All have it, or none derives from it.
  if (const Status status = comm::SetUpExchanges(bootstrap).agree(kept ? Status::success() : kept.error());
      status.ok())
    process.met().add(world_ranks, *std::move(kept));
}

bool CommRecord::derive(MpiProcess& process, const std::vector<Rank>& world_ranks) {
  if (!terms_.derives) return false;
  const auto choice = free_choice(process, world_ranks);
  if (!choice) return false;
  options_.is_part = !choice->is_users;
  auto derived = process.met().derive(world_ranks, options_);
  if (!derived) return false;
  Status status = *derived ? Status::success() : derived->error();
  if (status.ok()) communicator_ = *std::move(*derived);
  tuning_ = &process.met().tuning(world_ranks);
  if (tuning_->is_known) {
    // Without an exchange: where this rank alone has failed, the others hear of it in their first call.
    start_tuned(process);
    failure_ = std::move(status);
  } else {
    guard_ = std::make_unique<Guard>(false);
    auto bootstrap = bootstrap_over(comm_, rank_, size_);
    failure_ = bootstrap ? comm::SetUpExchanges(**bootstrap).agree(status) : bootstrap.error();
    if (failure_.ok()) failure_ = set_up_guard(process, **bootstrap);
    unsupported_ = failure_.ok() ? std::string() : shortage(failure_);
    if (!unsupported_.empty()) failure_ = Status::success();
  }
  if (failure_.ok() && unsupported_.empty()) usable_ = communicator_.get();
  return true;
}

bool CommRecord::use_again(MpiProcess& process) {
  std::optional<comm::SpareCommunicators::Taken> spares;
  std::optional<comm::SpareNote> mine;
  comm::CommunicatorOptions options;
  try {
    // All that takes memory: the others wait for this rank, and go on with it where all have the communicator.
    options = options_;
    start_tuned(process);
    mine = spares.emplace(comm::SpareCommunicators::process().take()).note_of(tuning_->digest, rank_, size_);
  } catch (const std::bad_alloc&) {
    mine.reset();
  }
  // One communicator has one id, each process counts its calls, and each has its own rank in it.
  struct Vote {
    std::uint64_t id, calls, not_id, not_calls;
  } all{}, vote{};
  vote.id = mine ? mine->id : rank_ == 0 ? 0 : 1;
  vote.calls = mine ? mine->calls : 0;
  vote.not_id = ~vote.id;
  vote.not_calls = ~vote.calls;
  const NativeMpi& mpi = *native_mpi();
  if (mpi.Allreduce(&vote, &all, sizeof vote, mpi.byte_type, mpi.and_op, comm_) != MPI_SUCCESS) return false;
  // Of a bit that is the same on all ranks one half keeps a one, of any other bit neither does.
  if ((all.id | all.not_id) != ~std::uint64_t{0} || (all.calls | all.not_calls) != ~std::uint64_t{0})
    return false;
  communicator_ = spares->use(mine->id);
  communicator_->use_again(std::move(options));
  usable_ = communicator_.get();
  return true;
}

void CommRecord::leave_hips() {
  usable_ = nullptr;
  unsupported_ = fmt::format("{} of {} ranks, after ranks passed different arguments", name_, size_);
}

CallClass CommRecord::pay() {
  const CallClass trial = *owed_;
  owed_.reset();
  usable_ = communicator_.get();
  note_delegated("the call after one that native MPI had refused");
  return trial;
}

void CommRecord::start_tuned(MpiProcess& process) {
  guard_ = std::make_unique<Guard>(process.guard_mode(terms_.one_node).has_trials);
  for (const auto& [of, decision] : tuning_->decisions) guard_->set(of, decision);
  guard_->resume(tuning_->unfinished);
  scope_ = tuning_->scope;
}

void CommRecord::keep_trials() {
  try {
    tuning_->unfinished = guard_->unfinished();
    // Else ranks count it at different calls of the next communicator.
    if (kFreesAtOnce) guard_->keep_calls_left(tuning_->decisions);
  } catch (const std::bad_alloc&) {
    tuning_->unfinished.clear();  // the ranks find that they have made different numbers of them
  }
}

Status CommRecord::set_up_guard(MpiProcess& process, comm::Bootstrap& bootstrap) {
  const GuardMode mode = process.guard_mode(terms_.one_node);
  comm::ByteWriter writer;
  writer.put_text(comm::this_process().node_key);
  writer.put(static_cast<std::uint8_t>((mode.has_trials || mode.uses_table) && process.knows_decisions()));
  comm::put_terms(writer,
                  {{"guard (HIPS_GUARD)", mode.text}, {"guard's table", mode.uses_table ? "one" : "none"}});
  auto all = bootstrap.allgather(writer.blob());
  if (!all) return all.error();
  std::vector<std::string> nodes;
  std::vector<comm::Terms> terms;
  bool first_knows = false;
  for (const comm::Blob& blob : *all) {
    comm::ByteReader reader(blob);
    nodes.push_back(reader.get_text());
    const bool knows = reader.get<std::uint8_t>() != 0;
    if (nodes.size() == 1) first_knows = knows;
    terms.push_back(comm::get_terms(reader));
  }
  if (Status status = comm::compare_terms(terms); !status.ok()) return status;
  *guard_ = Guard(mode.has_trials);
  scope_ = {nodes_text(nodes), communicator_->backend(), process.native_version()};
  std::ranges::replace(scope_.native, ' ', '_');
  if (first_knows)
    if (Status status = learn(process, bootstrap); !status.ok()) return status;
  if (tuning_ != nullptr) {
    tuning_->scope = scope_;
    tuning_->is_known = true;
  }
  return Status::success();
}

Status CommRecord::learn(MpiProcess& process, comm::Bootstrap& bootstrap) {
  // What rank 0 knows counts: other ranks may have been in other communicators, or have another file, or none.
  comm::ByteWriter writer;
  if (rank_ == 0) {
    for (const auto& [of, decision] : process.known_decisions(scope_)) {
      writer.put(static_cast<std::int32_t>(of.kind.index()));
      writer.put(static_cast<std::int32_t>(of.size_class));
      writer.put(decision.winner);
      writer.put(decision.hips_ns);
      writer.put(decision.native_ns);
      writer.put(decision.review_after);
    }
  }
  auto all = bootstrap.allgather(writer.blob());
  if (!all) return all.error();
  comm::ByteReader reader(all->front());
  while (!reader.rest().empty()) {
    const auto kind = reader.get<std::int32_t>(), size_class = reader.get<std::int32_t>();
    TuningDecision decision;
    decision.winner = reader.get<TuningChoice>();
    decision.hips_ns = reader.get<std::int64_t>();
    decision.native_ns = reader.get<std::int64_t>();
    decision.review_after = reader.get<std::uint32_t>();
    if (!reader.ok() || kind < 0 || kind >= CallKind::kNum || size_class < 0 ||
        size_class >= CallClass::kNumSizes)
      return Status::error(Code::kMismatch, "rank 0 sent invalid tuning decisions");
    guard_->set({CallKind::of_index(kind), size_class}, decision);
    note_decision({CallKind::of_index(kind), size_class}, decision);
  }
  return Status::success();
}

Result<std::unique_ptr<comm::Communicator>> CommRecord::make_another(MpiProcess& process) const {
  if (communicator_->derives()) {
    std::vector<Rank> all(static_cast<std::size_t>(size_));
    std::iota(all.begin(), all.end(), 0);
    auto derived = communicator_->derive(all, communicator_->next_derivation(), 0, options_);
    auto bootstrap = bootstrap_over(comm_, rank_, size_);
    if (!bootstrap) return hips::fail(bootstrap.error());
    // All have it, or none: where this rank alone went to native MPI the others would wait for it.
    Status status = derived ? Status::success() : derived.error();
    if (status = comm::SetUpExchanges(**bootstrap).agree(status); !status.ok())
      return hips::fail(std::move(status));
    return derived;
  }
  auto bootstrap = bootstrap_over(comm_, rank_, size_);
  if (!bootstrap) return hips::fail(bootstrap.error());
  auto created = comm::Communicator::create(**bootstrap, options_);
  log::configure(process.config().config.log, process.world_rank());
  return created;
}

std::string CommRecord::shortage(const Status& error) const {
  if (error.code != Code::kOutOfMemory && error.code != Code::kSystem) return {};
  std::string text = fmt::format("{} of {} ranks: {}", name_, size_, error.message);
  warn_of_native(text);
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
  // A program that had a thousand calls outstanding once may never have so many again.
  constexpr std::size_t kMostSpare = 64;
  const std::lock_guard lock(mutex_);
  if (!has_ended_ && spare_.size() < kMostSpare) spare_.push_back(std::move(call));
}

void CommRecord::count(const CallTally& tally) {
  const std::lock_guard lock(mutex_);
  if (reports_to_ != nullptr)
    reports_to_->report().add_taken(name_, size_, communicator_->describe(), tally);
  else
    tally_ += tally;
}

void CommRecord::end(MpiProcess& process) {
  comm_ = native_mpi()->world;
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  spare_.clear();
  if (counts_ && num_waiting_ > 0) {
    process.report().add_delegated(
        waits_ ? "communicators on which HiPS would not have saved what their set-up takes (HIPS_ADOPT=auto)"
               : "communicators before HiPS was expected to save what their set-up takes (HIPS_ADOPT=auto)",
        num_waiting_);
  }
  if (counts_) {
    process.report().add_classes(name_, size_, class_times_, guard_.get());
    process.report().add_native_time(other_native_ns_);
    process.report().add_trial_time(compared_ns_, decided_ns_);
  }
  if (!communicator_) return;
  if (tuning_ != nullptr && guard_) keep_trials();
  if (process.reports()) {
    reports_to_ = &process;
    process.report().add_taken(name_, size_, communicator_->describe(), std::exchange(tally_, {}));
  }
  // An outstanding request holds the record, and with it the communicator, until it has ended.
  if (weak_from_this().use_count() > 1) return;
  usable_ = nullptr;
  comm::SpareCommunicators::process().retire(std::move(communicator_));
}

bool CommRecord::renew() {
  if (!waits_ || weak_from_this().use_count() > 1) return false;
  waits_ = has_ended_ = error_printed_ = false;
  num_waiting_ = num_meetings_ = 0;
  tuning_ = nullptr;
  sections_.clear();
  class_times_.clear();
  other_native_ns_ = 0;
  return true;
}

}  // namespace hips::mpi
