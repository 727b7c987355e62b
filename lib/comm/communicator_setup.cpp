#include "lib/comm/communicator.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "lib/base/exception_status.hpp"
#include "lib/base/log.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/hierarchical_backend.hpp"
#include "lib/comm/plan_backend.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/design.hpp"
#include "lib/comm/setup/network_measurement.hpp"
#include "lib/comm/setup/node_groups.hpp"
#include "lib/comm/setup/reach.hpp"
#include "lib/comm/setup/socket.hpp"
#include "lib/comm/setup/spare_communicators.hpp"
#include "lib/comm/setup/transport_registry.hpp"
#include "lib/comm/shared_memory_backend.hpp"
#include "lib/comm/single_rank_backend.hpp"
#include "lib/cost/select.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

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

/// All ranks have it, so it is not given up when there is no memory to say so.
void log_made(const Communicator& made, const Config& config, const Design& design) noexcept {
  try {
    const std::string& name = made.origin().options.name;
    log::info(Subsystem::kComm, "{}: {} ranks, {}", name, made.size(), made.describe());
    if (config.reproducible == Reproducible::kAny && made.rank() == 0)
      log::info(Subsystem::kComm, "{}: reduced in rank order (HIPS_REPRODUCIBLE=any); {}", name,
                made.derives() ? "calls in shared memory always are" : design.cost_comparison);
  } catch (const std::bad_alloc&) {
    return;
  }
}

void log_used_again(const Communicator& used) noexcept {
  try {
    log::info(Subsystem::kComm, "{}: {} ranks, {}; used again", used.origin().options.name, used.size(),
              used.describe());
  } catch (const std::bad_alloc&) {
    return;
  }
}

Status derives_none() {
  return Status::error(Code::kInternal, "this communicator derives no others");
}

/// The same kind on all ranks.
std::unique_ptr<Backend> choose_backend(Backend::Context context, const Design& design,
                                        const std::vector<ProcessInfo>& processes) {
  const Config& config = *context.config;
  if (SharedMemoryBackend::serves(design, config, processes))
    return std::make_unique<SharedMemoryBackend>(std::move(context));
  if (auto nodes = NodeGroups::of(design, config, processes, context.rank);
      nodes && (nodes->share_long_vectors() ||
                medium_between(config.transport, processes).message_seconds >= cost::kSocketMessageSeconds))
    return std::make_unique<HierarchicalBackend>(std::move(context), *std::move(nodes));
  return std::make_unique<PlanBackend>(std::move(context));
}

/// A hash (the finalizer of SplitMix64), so that ids of different derivations differ.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ value >> 30U) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ value >> 27U) * 0x94d049bb133111ebULL;
  return value ^ value >> 31U;
}

std::uint64_t derived_id(std::uint64_t parent, std::uint64_t nth, std::uint64_t part) {
  return mixed(mixed(parent + nth * 0x9e3779b97f4a7c15ULL) + part);
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(Bootstrap& of_ranks,
                                                           const CommunicatorOptions& options) {
  if (Status status = check_not_forked(); !status.ok()) return fail(std::move(status));
  SetUpExchanges bootstrap(of_ranks);
  try {
    const LoadedConfig loaded = load_process_config();
    const auto config = std::make_shared<const Config>(loaded.config);
    log::configure(config->log, bootstrap.rank());
    const Rank rank = bootstrap.rank(), size = bootstrap.size();

    Announcement mine;
    mine.status = loaded.status;
    if (mine.status.ok()) mine.status = options.refused;
    if (!mine.status.ok()) mine.status.scope = Scope::kCommunicator;
    mine.process = this_process();
    if (mine.status.ok()) mine.status = describe_networks(*config, mine.process);
    mine.id = ProcessUid::random().low;
    Design design;
    if (mine.status.ok()) {
      auto made = make_design(options, *config, rank, size);
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
    if (!agreed) {
      bootstrap.end();
      return fail(agreed.error());
    }
    const std::vector<ProcessInfo>& processes = agreed->processes;
    Origin origin{options, design.topology_named, design.topology};
    if (!origin.options.progress) origin.options.progress = bootstrap.progress();
    if (size == 1) return of_one_rank(config, std::move(origin));
    if (agreed->spare) {
      bootstrap.end();
      auto communicator = spares.use(*agreed->spare);
      communicator->use_again(std::move(origin.options), config);
      return communicator;
    }
    if (Status status = check_reach(config->transport, processes); !status.ok()) {
      bootstrap.end();
      return fail(std::move(status));
    }

    design = with_wiring(std::move(design), options, *config, rank, processes);
    if (design.wiring) {
      if (rank == 0)
        log::info(Subsystem::kComm, "{}: the NICs show {}; HIPS_TOPO={} names it", options.name,
                  design.wiring->text, design.topology.spec);
      // Not every two nodes share a network, so parts need to know which they are.
      if (design.topology.servers_relay) origin = {origin.options, true, design.topology};
    }
    Measurement measurement;
    if (wants_measurement(design, *config, processes)) {
      if (agreed->network && is_enough_for(processes, *agreed->network)) design.network = agreed->network;
      if (!design.network) {
        auto measured = measure_network(bootstrap, {.config = *config,
                                                    .clock = options.clock,
                                                    .id = agreed->id,
                                                    .design = design,
                                                    .processes = processes});
        if (!measured) return fail(measured.error());
        measurement = *std::move(measured);
        design.network = measurement.constants ? measurement.constants : agreed->network;
        if (rank == 0 && design.network) log_network(options.name, *design.network);
      }
      if (design.network) remember_network(*design.network);
    }
    if (rank == 0) dump_topology(config->topology_dump, design.topology);
    auto communicator = std::make_unique<Communicator>(rank, size, config, std::move(origin));
    communicator->use(choose_backend(communicator->context(), design, processes));
    if (Status status = communicator->set_up(bootstrap, design, processes, agreed->id); !status.ok())
      return fail(std::move(status));
    bootstrap.end();
    if (options.may_reuse && !communicator->derives()) communicator->allow_reuse(agreed->digest);
    log_made(*communicator, *config, design);
    return communicator;
  } catch (const Error& error) {
    // The others wait for this rank.
    return fail(bootstrap.give_up(error.status()));
  } catch (...) {
    return fail(bootstrap.give_up(status_of_exception()));
  }
}

Status Communicator::set_up(SetUpExchanges& exchanges, const Design& design,
                            const std::vector<ProcessInfo>& processes, std::uint64_t id) {
  // The hub of the control plane, which any rank may become, has a connection of each other rank.
  constexpr std::size_t kSpareDescriptors = 128;
  if (!all_on_one_node(processes)) allow_descriptors(static_cast<std::size_t>(size_) + kSpareDescriptors);
  // Phase 1: create this rank's memory, endpoints and control-plane address.
  auto made = backend_->make(design, processes, id);
  Status status = made ? Status::success() : made.error();
  Result<Outbound> offer = fail(status);
  std::vector<ProcessInfo> members = processes;
  auto control = process_control(config_->job_token, config_->dead_after_ns);
  if (status.ok() && !control) status = control.error();
  if (status.ok()) {
    auto address =
        (*control)->listen(all_on_one_node(processes) ? Control::Reach::kNode : Control::Reach::kNetwork);
    if (address) {
      ByteWriter to_all;
      put_control_address(to_all, *address);
      to_all.put_bytes(made->to_all);
      offer = Outbound{to_all.take(), std::move(made->to_peers)};
    } else {
      status = address.error();
    }
  }
  if (!status.ok()) offer = fail(status);
  auto offers = exchanges.exchange_outcomes(offer);
  if (!offers) return offers.error();
  for (std::size_t r = 0; r < offers->from_all.size(); ++r) {
    Blob& of_rank = offers->from_all[r];
    ByteReader reader(of_rank);
    members[r].control = get_control_address(reader);
    const auto bytes = reader.get_bytes();
    if (!reader.ok() && status.ok()) status = malformed(static_cast<Rank>(r));
    of_rank = Blob(bytes.begin(), bytes.end());
  }

  // Phase 2: join the control plane and allocate staging.
  watch_->start(**control, backend_->failure_actions(), id, rank_, std::move(members));
  auto addresses =
      exchanges.exchange_outcomes(status.ok() ? backend_->allocate(*offers) : Result<Outbound>(fail(status)));
  if (!addresses) return addresses.error();

  // Phase 3: connect the endpoints.
  status = backend_->connect(*addresses);
  if (status.ok()) status = watch_->failure();
  return exchanges.agree(status);
}

std::unique_ptr<Communicator> Communicator::of_one_rank(std::shared_ptr<const Config> config, Origin origin) {
  auto made = std::make_unique<Communicator>(0, 1, std::move(config), std::move(origin));
  made->use(std::make_unique<SingleRankBackend>(made->context()));
  return made;
}

void Communicator::use_again(CommunicatorOptions options, std::shared_ptr<const Config> config) {
  follow(config ? std::move(config) : config_, options);
  origin_.options = std::move(options);
  failed_call_ = 0;
  watch_->use_again();
  log_used_again(*this);
}

Result<std::unique_ptr<Communicator>> Communicator::derive(std::span<const Rank> members, std::uint64_t nth,
                                                           std::uint64_t part,
                                                           const CommunicatorOptions& options,
                                                           IfFailed if_failed) {
  if (Status status = check_not_forked(); !status.ok()) return fail(std::move(status));
  if (!derives()) return fail(derives_none());
  try {
    Origin origin{.options = options, .named = false, .topology = {}};
    auto made = members.size() == 1 ? of_one_rank(config_, std::move(origin))
                                    : derive_several(members, derived_id(watch_->id(), nth, part),
                                                     std::move(origin), if_failed);
    if (made)
      log::info(Subsystem::kComm, "{}: {} ranks, {}", options.name, members.size(), (*made)->describe());
    return made;
  } catch (const std::bad_alloc&) {
    return fail(fail_derived(members, nth, part));
  }
}

Result<std::unique_ptr<Communicator>> Communicator::derive_several(std::span<const Rank> members,
                                                                   std::uint64_t id, Origin origin,
                                                                   IfFailed if_failed) {
  const auto rank = static_cast<Rank>(std::ranges::find(members, rank_) - members.begin());
  auto made =
      std::make_unique<Communicator>(rank, static_cast<Rank>(members.size()), config_, std::move(origin));
  // A peer may not know of the failure yet, and wait in the new communicator.
  const bool depends = if_failed == IfFailed::kFail;
  Status status = depends ? failure() : Status::success();
  if (status.ok()) {
    auto backend = backend_->derive(members, id, made->context());
    if (backend)
      made->use(*std::move(backend));
    else
      status = backend.error();
  }
  made->watch_->start(*watch_, depends, status.ok() ? made->backend_->failure_actions() : FailureActions(),
                      id, rank, {members.begin(), members.end()});
  if (status.ok()) return made;
  made->watch_->fail(status);
  return fail(std::move(status));
}

Status Communicator::fail_derived(std::span<const Rank> members, std::uint64_t nth, std::uint64_t part) {
  if (!derives()) return derives_none();
  // Memory may be short for a moment only.
  const Status status = node::NodeTeam::abandoned();
  const auto listener = std::make_shared<FailureDetector>();
  const auto rank = static_cast<Rank>(std::ranges::find(members, rank_) - members.begin());
  listener->start(*watch_, false, {}, derived_id(watch_->id(), nth, part), rank,
                  {members.begin(), members.end()});
  listener->fail(status);
  listener->leave();
  return status;
}

}  // namespace hips::comm
