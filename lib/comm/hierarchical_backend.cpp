#include "lib/comm/hierarchical_backend.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/comm/communicator.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/design.hpp"
#include "lib/comm/setup/reach.hpp"
#include "lib/comm/setup/team_maker.hpp"

namespace hips::comm {
namespace {

/// Makes a chunk 2 MiB: its shares keep the NICs busy for longer than the start of the next chunk takes.
constexpr std::uint32_t kSlices = 16;

/// The part of the communicator's staging that is shared memory of the node; the plans use the rest.
std::size_t staging_of_node(const Config& config) {
  return config.staging_bytes * 3 / 8;
}

/// "3 ranks", "1 to 3 ranks"
std::string ranks_text(const NodeGroups& nodes) {
  const std::string most = fmt::format("{} ranks", nodes.most_ranks());
  return nodes.least_ranks() == nodes.most_ranks() ? most
                                                   : fmt::format("{} to {}", nodes.least_ranks(), most);
}

node::StagingLayout layout_of(const Config& config, Rank ranks) {
  return node::StagingLayout::of(ranks, staging_of_node(config), kSlices);
}

Config config_of_team(const Config& config, const NodeGroups& nodes) {
  // The same on all nodes: what is left on that whose staging is the largest.
  const std::size_t staging = std::max(layout_of(config, nodes.least_ranks()).segment_bytes(),
                                       layout_of(config, nodes.most_ranks()).segment_bytes());
  Config rest = config;
  rest.staging_bytes -= std::min(staging, config.staging_bytes / 2);
  return rest;
}

}  // namespace

Result<Outbound> HierarchicalBackend::make(const Design& design, const std::vector<ProcessInfo>& processes,
                                           std::uint64_t id) {
  const cost::Medium medium = medium_between(config().transport, processes);
  auto choices = choose_plans(design, rank(), medium);
  if (!choices) return fail(choices.error());
  const Topology wiring = topology_of_nodes(design, nodes_);
  auto between = choose_plans_between(wiring, nodes_, medium, design.network);
  if (!between) return fail(between.error());
  between_ = *std::move(between);
  first_between_ = static_cast<std::int32_t>(choices->size());
  std::vector<Design::Choice> programs = *choices;
  programs.insert(programs.end(), between_.choices.begin(), between_.choices.end());
  const Config of_team = config_of_team(config(), nodes_);
  auto made = make_team({.config = of_team,
                         .clock = context_.clock,
                         .rank = rank(),
                         .id = id,
                         .topology = design.topology,
                         .processes = processes,
                         .nics = design.wiring ? &design.wiring->nics : nullptr,
                         .choices = programs,
                         .on_error = context_.on_error});
  if (!made) return fail(made.error());
  engine_ = std::move(made->engine);
  team_ = std::move(made->team);
  plans_.emplace(*choices, rank());

  std::vector<Rank> names;
  for (Rank number = 0; number < nodes_.ranks_here(); ++number)
    names.push_back(nodes_.rank_of(nodes_.node, number));
  auto segment = node_segment();
  if (!segment) return fail(segment.error());
  if (Status status = (*segment)->make_wake_pipe(); !status.ok()) return fail(std::move(status));
  // The id differs from the team's, so that traces number its calls separately.
  auto node = node::NodeTeam::create({.segment = *segment,
                                      .id = id + 1,
                                      .rank = nodes_.local_rank,
                                      .size = nodes_.ranks_here(),
                                      .max_staging_bytes = staging_of_node(config()),
                                      .num_slices = kSlices,
                                      .clock = &engine_->engine.clock(),
                                      .trace = engine_->engine.trace(),
                                      .names = std::move(names),
                                      .uses_wake_pipes = true,
                                      .direct = config().node_direct,
                                      .on_error = context_.on_error});
  if (!node) return fail(node.error());
  node_ = std::move(*node);
  calls_ = std::make_unique<HierarchicalCalls>(
      engine_->engine, *node_, nodes_, [&](Rank ranks) { return layout_of(config(), ranks); },
      context_.on_error);

  name_ = fmt::format("memory,{}", fmt::join(made->transports, ","));
  const bool for_all = std::ranges::all_of(*choices, &Design::Choice::automatic);
  description_ = fmt::format(
      "barrier and allreduce{} in the shared memory of the {} of a node and, between nodes, {} on {}; "
      "other calls {} on {}; {}; {}",
      !nodes_.share_long_vectors() ? fmt::format(" up to {} bytes", between_.one_leader_up_to_bytes)
      : for_all                    ? ""
                                   : " of sizes without a chosen algorithm",
      ranks_text(nodes_), describe_choices(between_.choices), wiring.name, describe_choices(*choices),
      design.topology.name, fmt::join(made->transports, ", "), describe_emulation(design, processes));
  return team_->offer();
}

FailureActions HierarchicalBackend::failure_actions() {
  // The team comes last: it wakes sleeping threads.
  return {.fail =
              [node = node_.get(), team = team_.get()](const Status& status) {
                node->fail(status);
                team->fail(status);
              },
          .left = [team = team_.get()](Rank rank) { team->peer_left(rank); }};
}

Result<Outbound> HierarchicalBackend::allocate(const Inbound& offers) {
  auto addresses = team_->allocate(offers);
  if (!addresses) return addresses;
  // What a team allocates is for its peers only.
  const node::NodeName name = node_->segment()->name();
  const auto bytes = std::as_bytes(std::span(&name, 1));
  addresses->to_all.assign(bytes.begin(), bytes.end());
  return addresses;
}

Status HierarchicalBackend::connect(const Inbound& addresses) {
  std::vector<node::NodeName> names(static_cast<std::size_t>(nodes_.ranks_here()));
  for (Rank number = 0; number < nodes_.ranks_here(); ++number) {
    const Rank rank = nodes_.rank_of(nodes_.node, number);
    const Blob& name = addresses.from_all[static_cast<std::size_t>(rank)];
    if (name.size() != sizeof(node::NodeName)) return malformed(rank);
    std::memcpy(&names[static_cast<std::size_t>(number)], name.data(), sizeof(node::NodeName));
  }
  if (Status status = node_->connect(names); !status.ok()) return status;
  return team_->connect(addresses);
}

HierarchicalParts HierarchicalBackend::parts() {
  return {.nodes = nodes_,
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

Status HierarchicalBackend::run(const CallArgs& args, Communicator& caller) {
  HierarchicalCall call(parts());
  return caller.finish_blocking(call, args);
}

std::unique_ptr<PendingCall> HierarchicalBackend::make_call() {
  return std::make_unique<HierarchicalCall>(parts());
}

void HierarchicalBackend::advance() {
  engine_->engine.try_progress();
}

Clock& HierarchicalBackend::clock() const {
  return engine_->engine.clock();
}

}  // namespace hips::comm
