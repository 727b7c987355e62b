#include "lib/comm/communicator.hpp"

#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/hierarchical_communicator.hpp"
#include "lib/comm/node_communicator.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/setup/design.hpp"
#include "lib/comm/setup/network_measurement.hpp"
#include "lib/comm/setup/node_groups.hpp"
#include "lib/comm/setup/reach.hpp"
#include "lib/comm/setup/spare_communicators.hpp"
#include "lib/comm/setup/transport_registry.hpp"
#include "lib/comm/team_communicator.hpp"
#include "lib/cost/select.hpp"
#include "lib/reduce/reduce.hpp"
#include "lib/reduce/user_op.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

/// A call of a single rank whose arguments check_arguments() accepts.
void carry_out_alone(const CallArgs& args) {
  if (reduces(args.collective)) {
    reduce::fold(args.type, args.op, args.out, {&args.in, 1}, static_cast<std::size_t>(args.count));
  } else if (args.collective == Collective::kScatter || args.collective == Collective::kAlltoall) {
    if (args.count > 0 && args.out != args.in)
      std::memcpy(args.out, args.in, args.count * size_of(args.type));
  } else if (has_sections(args.collective) && args.count > 0) {
    std::byte* const to = args.out + args.sections->displacement(0) * size_of(args.type);
    if (to != args.in) std::memcpy(to, args.in, args.count * size_of(args.type));
  }
}

/// Why a communicator of one rank has failed, if it has. Any thread.
class LoneFailure {
 public:
  void set(Status status) {
    const std::lock_guard lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    status_ = std::move(status);
    failed_.store(true, std::memory_order_release);
  }
  [[nodiscard]] Status get() const {
    if (!failed_.load(std::memory_order_acquire)) return Status::success();
    return status_;  // set once
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  Status status_;
};

/// A call of a single rank: it has ended when start() returns.
class LoneRequest final : public Request {
 public:
  LoneRequest(const CallArgs& args, const LoneFailure& failure) : failure_(failure) { set(args); }
  Status renew(const CallArgs& args) override {
    if (Status status = check_arguments(args, 0, 1); !status.ok()) return status;
    set(args);
    return Status::success();
  }
  Status start() override {
    if (Status status = check_not_forked(); !status.ok()) return status;
    if (Status status = failure_.get(); !status.ok()) return status;
    carry_out_alone(args_);
    return Status::success();
  }
  [[nodiscard]] bool active() const override { return false; }
  bool has_ended() override { return true; }
  bool test() override { return true; }
  Status wait() override { return Status::success(); }

 private:
  void set(const CallArgs& args) {
    op_hold_ = reduce::UserOpHold(args.op);
    args_ = args;
  }

  const LoneFailure& failure_;
  CallArgs args_;
  reduce::UserOpHold op_hold_;
};

/// HIPS_TOPO_DUMP: what the first communicator of this process runs on.
void dump_topology(const std::string& path, const Topology& topology) {
  static std::atomic<bool> dumped{false};
  if (path.empty() || dumped.exchange(true)) return;
  topology::TopologyFile file;
  file.topology = topology;
  // The communicator works without the file; the user that asked for it has to know.
  if (auto written = topology::write_topology_file(path, file); !written)
    log::warn(Subsystem::kComm, "HIPS_TOPO_DUMP: {}", written.error().message);
}

void log_network(const std::string& name, const cost::Constants& network) {
  log::info(
      Subsystem::kComm,
      "{}: measured between the nodes: {:.3g} us for a hop, {:.3g} us for a message, {:.3g} Gb/s for a NIC",
      name, network.hop_seconds * 1e6, network.message_seconds * 1e6, network.bytes_per_s * 8e-9);
}

/// A communicator of one rank.
class LoneCommunicator final : public Communicator {
 public:
  [[nodiscard]] Rank rank() const override { return 0; }
  [[nodiscard]] Rank size() const override { return 1; }
  [[nodiscard]] const std::string& describe() const override { return description_; }
  [[nodiscard]] const std::string& backend() const override { return backend_; }
  Status call(const CallArgs& args) override {
    if (Status status = check_not_forked(); !status.ok()) return status;
    if (Status status = check_arguments(args, 0, 1); !status.ok()) return status;
    if (Status status = failure_.get(); !status.ok()) return status;
    carry_out_alone(args);
    return Status::success();
  }
  Result<std::unique_ptr<Request>> prepare_request(const CallArgs& args) override {
    if (Status status = check_not_forked(); !status.ok()) return fail(std::move(status));
    if (Status status = check_arguments(args, 0, 1); !status.ok()) return fail(std::move(status));
    return std::make_unique<LoneRequest>(args, failure_);
  }
  void note_delegated(const char* /*what*/) override {}
  [[nodiscard]] Status failure() const override { return failure_.get(); }
  Status abort(std::string_view text) override {
    if (Status status = check_not_forked(); !status.ok()) return status;
    failure_.set(aborted_by(0, text));
    return Status::success();
  }

 private:
  LoneFailure failure_;
  std::string description_ = "one rank: a copy", backend_ = "memory";
};

}  // namespace

Status aborted_by(Rank rank, std::string_view text) {
  // It travels in a control frame, which has a limit of its own.
  constexpr std::size_t kMostBytes = 4096;
  Status status = Status::error(
      Code::kAborted, fmt::format("rank {} aborted the communicator: {}", rank, text.substr(0, kMostBytes)),
      Scope::kCommunicator);
  status.rank = rank;
  return status;
}

Result<std::unique_ptr<Communicator>> Communicator::create(Bootstrap& bootstrap,
                                                           const CommunicatorOptions& options) {
  if (Status status = check_not_forked(); !status.ok()) return fail(std::move(status));
  LoadedConfig loaded = load_process_config();
  log::configure(loaded.config.log, bootstrap.rank());
  const Rank rank = bootstrap.rank(), size = bootstrap.size();

  Announcement mine;
  mine.status = loaded.status;
  if (mine.status.ok()) mine.status = options.refused;
  if (!mine.status.ok()) mine.status.scope = Scope::kCommunicator;
  mine.process = this_process();
  if (mine.status.ok()) mine.status = describe_networks(loaded.config, mine.process);
  mine.id = ProcessUid::random().low;
  Design design;
  if (mine.status.ok()) {
    auto made = make_design(options, loaded.config, rank, size);
    if (made)
      design = std::move(*made);
    else
      mine.status = made.error();
  }
  mine.terms = design.terms;
  mine.network = known_network();
  auto spares = options.may_reuse ? SpareCommunicators::process().take() : SpareCommunicators::Taken();
  mine.spares = spares.notes();
  auto blobs = bootstrap.allgather(encode(mine));
  if (!blobs) return fail(blobs.error());
  auto agreed = compare(*blobs);
  if (!agreed) return fail(agreed.error());
  const std::vector<ProcessInfo>& processes = agreed->processes;
  Origin origin{options, design.topology_named, design.topology};
  if (!origin.options.progress) origin.options.progress = bootstrap.progress();
  if (size == 1) {
    std::unique_ptr<Communicator> lone = std::make_unique<LoneCommunicator>();
    lone->origin_ = std::move(origin);
    return lone;
  }
  if (agreed->spare) {
    auto communicator = spares.use(*agreed->spare);
    communicator->use_again(loaded.config, origin.options);
    communicator->origin_.options = std::move(origin.options);
    log::info(Subsystem::kComm, "{}: {} ranks, {}; used again", options.name, size, communicator->describe());
    return communicator;
  }
  if (Status status = check_reach(loaded.config.transport, processes); !status.ok())
    return fail(std::move(status));

  design = with_wiring(std::move(design), options, loaded.config, rank, processes);
  if (design.wiring) {
    if (rank == 0)
      log::info(Subsystem::kComm, "{}: the NICs show {}; HIPS_TOPO={} names it", options.name,
                design.wiring->text, design.topology.spec);
    // Not every two nodes share a network, so parts need to know which they are.
    if (design.topology.servers_relay) origin = {origin.options, true, design.topology};
  }
  Measurement measurement;
  if (wants_measurement(design, loaded.config, processes)) {
    design.network = agreed->network;
    if (!design.network) {
      auto measured = measure_network(bootstrap, {.config = loaded.config,
                                                  .clock = options.clock,
                                                  .id = agreed->id,
                                                  .design = design,
                                                  .processes = processes});
      if (!measured) return fail(measured.error());
      measurement = *std::move(measured);
      design.network = measurement.constants;
      if (rank == 0 && design.network) log_network(options.name, *design.network);
    }
    if (design.network) remember_network(*design.network);
  }
  if (rank == 0) dump_topology(loaded.config.topology_dump, design.topology);
  std::unique_ptr<WatchedCommunicator> communicator;
  const bool in_memory = NodeCommunicator::serves(design, loaded.config, processes);
  if (in_memory) {
    communicator = std::make_unique<NodeCommunicator>(bootstrap, loaded.config, options);
  } else if (auto nodes = NodeGroups::of(design, loaded.config, processes, rank);
             nodes && (nodes->share_long_vectors() ||
                       medium_between(loaded.config.transport, processes).message_seconds >=
                           cost::kSocketMessageSeconds)) {
    communicator =
        std::make_unique<HierarchicalCommunicator>(bootstrap, loaded.config, options, *std::move(nodes));
  } else {
    communicator = std::make_unique<TeamCommunicator>(bootstrap, loaded.config, options);
  }
  if (Status status = communicator->set_up(bootstrap, loaded.config, design, processes, agreed->id);
      !status.ok())
    return fail(std::move(status));
  if (options.may_reuse && !in_memory) communicator->allow_reuse(agreed->digest);
  communicator->origin_ = std::move(origin);
  log::info(Subsystem::kComm, "{}: {} ranks, {}", options.name, size, communicator->describe());
  if (loaded.config.reproducible == Reproducible::kAny && rank == 0)
    log::info(Subsystem::kComm, "{}: reduced in rank order (HIPS_REPRODUCIBLE=any); {}", options.name,
              in_memory ? "calls in shared memory always are" : design.cost_comparison);
  return communicator;
}

Result<std::unique_ptr<Communicator>> Communicator::derive(std::span<const Rank> members, std::uint64_t nth,
                                                           std::uint64_t part,
                                                           const CommunicatorOptions& options,
                                                           IfFailed if_failed) {
  if (Status status = check_not_forked(); !status.ok()) return fail(std::move(status));
  try {
    Result<std::unique_ptr<Communicator>> made = std::make_unique<LoneCommunicator>();
    if (members.size() > 1) made = make_derived(members, nth, part, options, if_failed);
    if (!made) return made;
    (*made)->origin_ = {.options = options, .named = false, .topology = {}};
    log::info(Subsystem::kComm, "{}: {} ranks, {}", options.name, members.size(), (*made)->describe());
    return made;
  } catch (const std::bad_alloc&) {
    return fail(fail_derived(members, nth, part));
  }
}

}  // namespace hips::comm
