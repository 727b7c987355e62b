#include "lib/comm/hosts_communicator.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/comm/control/wire.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/setup/reach.hpp"
#include "lib/comm/setup/team_maker.hpp"

namespace hips::comm {
namespace {

/// With which a chunk is 2 MiB: its shares keep the NICs busy for longer than it takes to start the next.
constexpr std::uint32_t kSlices = 16;

/// Of the staging that a communicator may have, what is the host's; the rest is the plans'.
std::size_t staging_of_node(const Config& config) {
  return config.staging_bytes * 3 / 8;
}

Config config_of_team(const Config& config, Rank per_host) {
  const auto layout = node::StagingLayout::of(per_host, staging_of_node(config), kSlices);
  Config rest = config;
  rest.staging_bytes -= std::min(layout.segment_bytes(), config.staging_bytes / 2);
  return rest;
}

}  // namespace

HostsCommunicator::~HostsCommunicator() {
  if (in_forked_child()) {
    // Everything here belongs to the parent: closing it would reach the peers.
    (void)calls_.release();
    (void)node_.release();
    (void)team_.release();
    new std::shared_ptr<ProcessEngine>(std::move(engine_));
    return;
  }
  leave();
}

Result<Blob> HostsCommunicator::make(const Design& design, const std::vector<ProcessInfo>& processes,
                                     std::uint64_t id) {
  const cost::Medium medium = medium_between(config_.transport, processes);
  auto choices = choose_plans(design, rank(), medium);
  if (!choices) return fail(choices.error());
  const Topology wiring = topology_of_hosts(design, hosts_);
  auto between = choose_plans_between(wiring, hosts_, medium);
  if (!between) return fail(between.error());
  between_ = *std::move(between);
  first_between_ = static_cast<std::int32_t>(choices->size());
  std::vector<Design::Choice> programs = *choices;
  programs.insert(programs.end(), between_.begin(), between_.end());
  const auto found = [watch = watch_.get()](const Status& status) { watch->found(status); };
  const Config of_team = config_of_team(config_, hosts_.per_host);
  auto made = make_team({.config = of_team,
                         .clock = clock_,
                         .rank = rank(),
                         .id = id,
                         .topology = design.topology,
                         .processes = processes,
                         .choices = programs,
                         .on_error = found});
  if (!made) return fail(made.error());
  engine_ = std::move(made->engine);
  team_ = std::move(made->team);
  plans_.emplace(*choices, rank());

  std::vector<Rank> names;
  for (Rank number = 0; number < hosts_.per_host; ++number)
    names.push_back(hosts_.rank_of(hosts_.host, number));
  // In traces its calls are counted apart from the team's operations.
  auto node = node::NodeTeam::create({.rank = hosts_.local,
                                      .size = hosts_.per_host,
                                      .max_staging_bytes = staging_of_node(config_),
                                      .num_slices = kSlices,
                                      .clock = &engine_->engine.clock(),
                                      .trace = engine_->engine.trace(),
                                      .id = id + 1,
                                      .names = std::move(names),
                                      .has_doors = true,
                                      .direct = config_.node_direct,
                                      .on_error = found});
  if (!node) return fail(node.error());
  node_ = std::move(*node);
  calls_ = std::make_unique<HostsCalls>(engine_->engine, *node_, hosts_.per_host);

  carrier_ = fmt::format("memory,{}", fmt::join(made->transports, ","));
  const bool for_all = std::ranges::all_of(*choices, &Design::Choice::automatic);
  description_ = fmt::format(
      "allreduce{} in memory that the {} ranks of a host share and, between hosts, {} on {}; "
      "other calls {} on {}; {}; {}",
      for_all ? "" : " of the sizes that the table leaves to HiPS", hosts_.per_host,
      describe_choices(between_), wiring.name, describe_choices(*choices), design.topology.name,
      fmt::join(made->transports, ", "), describe_emulation(design.topology, processes));
  return team_->offer();
}

Verdicts HostsCommunicator::verdicts() {
  // The team last: it wakes who sleeps.
  return {.fail =
              [node = node_.get(), team = team_.get()](const Status& status) {
                node->fail(status);
                team->fail(status);
              },
          .left = [team = team_.get()](Rank rank) { team->peer_left(rank); }};
}

Result<Blob> HostsCommunicator::allocate(const std::vector<Blob>& offers) {
  auto address = team_->allocate(offers);
  if (!address) return address;
  ByteWriter writer;
  writer.put_bytes(std::as_bytes(std::span(&node_->name(), 1)));
  writer.put_bytes(*address);
  return writer.take();
}

Status HostsCommunicator::connect(const std::vector<Blob>& addresses) {
  std::vector<SharedMemoryName> names(static_cast<std::size_t>(hosts_.per_host));
  std::vector<Blob> of_team;
  for (const Blob& address : addresses) {
    ByteReader reader(address);
    (void)reader.get_bytes();
    const auto bytes = reader.get_bytes();
    of_team.emplace_back(bytes.begin(), bytes.end());
  }
  for (Rank number = 0; number < hosts_.per_host; ++number) {
    ByteReader reader(addresses[static_cast<std::size_t>(hosts_.rank_of(hosts_.host, number))]);
    const auto bytes = reader.get_bytes();
    SharedMemoryName& name = names[static_cast<std::size_t>(number)];
    std::memcpy(&name, bytes.data(), std::min(sizeof(name), bytes.size()));
  }
  if (Status status = node_->connect(names); !status.ok()) return status;
  return team_->connect(of_team);
}

HostsParts HostsCommunicator::parts() {
  return {.hosts = hosts_,
          .node = *node_,
          .team = {.engine = engine_->engine,
                   .team = *team_,
                   .plans = *plans_,
                   .buffers = buffers_,
                   .rank = rank(),
                   .size = size()},
          .between = between_,
          .first_between = first_between_,
          .calls = *calls_};
}

Status HostsCommunicator::run(const CallArgs& args) {
  HostsCall call(parts());
  if (Status status = call.set(args); !status.ok()) return status;
  call.start();
  return wait(call);
}

std::unique_ptr<PendingCall> HostsCommunicator::make_call() {
  return std::make_unique<HostsCall>(parts());
}

void HostsCommunicator::advance() {
  engine_->engine.try_progress();
}

Clock& HostsCommunicator::clock() const {
  return engine_->engine.clock();
}

}  // namespace hips::comm
