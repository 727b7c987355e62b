#include "lib/comm/node_communicator.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "lib/base/type_text.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/setup/agreement.hpp"

namespace hips::comm {
namespace {

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

bool NodeCommunicator::serves(const Design& design, const Config& config,
                              const std::vector<ProcessInfo>& processes) {
  return !design.named && config.transport == "auto" && processes.size() <= kMostRanks &&
         all_on_one_node(processes);
}

NodeCommunicator::NodeCommunicator(Bootstrap& bootstrap, const Config& config,
                                   const CommunicatorOptions& options)
    : WatchedCommunicator(bootstrap, config, options),
      config_(std::make_shared<const Config>(config)),
      clock_(options.clock) {}

NodeCommunicator::NodeCommunicator(const NodeCommunicator& parent, std::span<const Rank> members, Rank rank,
                                   const CommunicatorOptions& options)
    : WatchedCommunicator(rank, static_cast<Rank>(members.size()), *parent.config_, options),
      config_(parent.config_),
      clock_(parent.clock_),
      met_(parent.met_),
      engine_(parent.engine_) {
  for (const Rank member : members) places_.push_back(parent.places_[static_cast<std::size_t>(member)]);
}

NodeCommunicator::~NodeCommunicator() {
  if (in_forked_child()) {
    // These belong to the parent.
    (void)team_.release();
    new std::shared_ptr<ProcessEngine>(std::move(engine_));
    return;
  }
  leave();
}

Result<Blob> NodeCommunicator::make(const Design& /*design*/, const std::vector<ProcessInfo>& processes,
                                    std::uint64_t id) {
  met_ = std::make_shared<const std::vector<ProcessInfo>>(processes);
  places_.resize(processes.size());
  std::iota(places_.begin(), places_.end(), 0);
  // The engine provides clock and trace only; it has no transport.
  auto engine = process_engine({.clock = clock_,
                                .spin = spin_limits(*met_, places_),
                                .rank = rank(),
                                .size = size(),
                                .trace_dir = config_->trace_dir});
  if (!engine) return fail(engine.error());
  engine_ = std::move(*engine);
  auto segment = node_segment();
  if (!segment) return fail(segment.error());
  if (Status status = make_team(id, *std::move(segment)); !status.ok()) return fail(std::move(status));
  return Blob();
}

Status NodeCommunicator::make_team(std::uint64_t id, std::shared_ptr<node::NodeSegment> segment) {
  auto team = node::NodeTeam::create(
      {.segment = std::move(segment),
       .id = id,
       .rank = rank(),
       .size = size(),
       .max_staging_bytes = config_->staging_bytes,
       .waits = engine_->waits,
       .clock = &engine_->engine.clock(),
       .trace = engine_->engine.trace(),
       .oversubscribed = spin_limits(*met_, places_).oversubscribed(),
       .direct = config_->node_direct,
       .on_error = [watch = watch_.get()](const Status& status) { watch->found(status); }});
  if (!team) return team.error();
  team_ = std::move(*team);
  calls_.emplace(*team_);
  const node::StagingLayout& layout = team_->layout();
  backend_ = "memory";
  description_ = fmt::format(
      "shared memory of one node: up to {} bytes at once, larger calls in {} slices of {} KiB; not emulated",
      layout.exchange_bytes, layout.num_slices, layout.slice_bytes / 1024);
  return Status::success();
}

Result<std::unique_ptr<Communicator>> NodeCommunicator::make_derived(std::span<const Rank> members,
                                                                     std::uint64_t nth, std::uint64_t part,
                                                                     const CommunicatorOptions& options,
                                                                     IfFailed if_failed) {
  const std::uint64_t id = derived_id(watch_->id(), nth, part);
  const auto place = static_cast<Rank>(std::ranges::find(members, rank()) - members.begin());
  std::unique_ptr<NodeCommunicator> made(new NodeCommunicator(*this, members, place, options));
  // A peer may not know of the failure yet, and wait in the new communicator.
  Status status = if_failed == IfFailed::kFail ? watch_->failure() : Status::success();
  if (status.ok()) status = made->make_team(id, team_->segment());
  if (status.ok()) {
    std::vector<std::shared_ptr<node::NodePeer>> processes;
    for (const Rank member : members)
      processes.push_back(team_->processes()[static_cast<std::size_t>(member)]);
    made->team_->connect(std::move(processes));
  }
  made->watch_->start(*watch_, if_failed == IfFailed::kFail,
                      status.ok() ? made->failure_actions() : FailureActions(), id, place,
                      {members.begin(), members.end()});
  if (!status.ok()) {
    made->watch_->fail(status);
    return fail(std::move(status));
  }
  return made;
}

Status NodeCommunicator::fail_derived(std::span<const Rank> members, std::uint64_t nth, std::uint64_t part) {
  // Memory may be short for a moment only.
  const auto listener = std::make_shared<FailureDetector>();
  const auto place = static_cast<Rank>(std::ranges::find(members, rank()) - members.begin());
  listener->start(*watch_, false, {}, derived_id(watch_->id(), nth, part), place,
                  {members.begin(), members.end()});
  listener->fail(node::NodeTeam::abandoned());
  listener->leave();
  return node::NodeTeam::abandoned();
}

FailureActions NodeCommunicator::failure_actions() {
  // `left` does nothing: a waiting call finds out by itself that a missing rank has left.
  return {.fail = [team = team_.get()](const Status& status) { team->fail(status); }, .left = [](Rank) {}};
}

Result<Blob> NodeCommunicator::allocate(const std::vector<Blob>& /*offers*/) {
  Blob blob(sizeof(node::NodeName));
  const node::NodeName name = team_->segment()->name();
  std::memcpy(blob.data(), &name, sizeof name);
  return blob;
}

Status NodeCommunicator::connect(const std::vector<Blob>& addresses) {
  std::vector<node::NodeName> names(addresses.size());
  for (std::size_t r = 0; r < addresses.size(); ++r) {
    if (addresses[r].size() != sizeof(node::NodeName)) return malformed(static_cast<Rank>(r));
    std::memcpy(&names[r], addresses[r].data(), sizeof(node::NodeName));
  }
  return team_->connect(names);
}

Status NodeCommunicator::refuse(const CallArgs& args) const {
  if (!has_pieces_for_all(args.collective) || team_->layout().holds(size_of(args.type), size()))
    return Status::success();
  return Status::error(
      Code::kUnsupported,
      fmt::format("{}: slices of {} bytes are too small for one element of {} from each of {} ranks; "
                  "raise HIPS_STAGING_BYTES, or use smaller elements",
                  to_string(args.collective), team_->layout().slice_bytes, type_text(args.type), size()));
}

Status NodeCommunicator::run(const CallArgs& args) {
  NodeCall call(*calls_);
  (void)call.set(args);
  call.start();
  // Fast path: a small call completes after a few polls, which saves setting up the wait.
  if (calls_->poll_briefly(call)) return Status::success();
  return wait(call);
}

std::unique_ptr<PendingCall> NodeCommunicator::make_call() {
  return std::make_unique<NodeCall>(*calls_);
}

void NodeCommunicator::advance() {
  calls_->advance();
}

Clock& NodeCommunicator::clock() const {
  return engine_->engine.clock();
}

}  // namespace hips::comm
