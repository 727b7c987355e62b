#include "lib/comm/node_communicator.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "lib/base/type_text.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/setup/agreement.hpp"

namespace hips::comm {

bool NodeCommunicator::serves(const Design& design, const Config& config,
                              const std::vector<ProcessInfo>& processes) {
  return !design.named && config.transport == "auto" && processes.size() <= kMostRanks &&
         all_on_one_node(processes);
}

NodeCommunicator::NodeCommunicator(Bootstrap& bootstrap, const Config& config,
                                   const CommunicatorOptions& options)
    : WatchedCommunicator(bootstrap, config, options), config_(config), clock_(options.clock) {}

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
  const SpinLimits spin = spin_limits(processes, processes[static_cast<std::size_t>(rank())]);
  // The engine provides clock and trace only; it has no transport.
  auto engine = process_engine(
      {.clock = clock_, .spin = spin, .rank = rank(), .size = size(), .trace_dir = config_.trace_dir});
  if (!engine) return fail(engine.error());
  engine_ = std::move(*engine);
  auto segment = node_segment();
  if (!segment) return fail(segment.error());
  auto team = node::NodeTeam::create(
      {.segment = *segment,
       .id = id,
       .rank = rank(),
       .size = size(),
       .max_staging_bytes = config_.staging_bytes,
       .waits = engine_->waits,
       .clock = &engine_->engine.clock(),
       .trace = engine_->engine.trace(),
       .oversubscribed = spin.oversubscribed(),
       .direct = config_.node_direct,
       .on_error = [watch = watch_.get()](const Status& status) { watch->found(status); }});
  if (!team) return fail(team.error());
  team_ = std::move(*team);
  calls_.emplace(*team_);
  const node::StagingLayout& layout = team_->layout();
  backend_ = "memory";
  description_ = fmt::format(
      "shared memory of one node: up to {} bytes at once, larger calls in {} slices of {} KiB; not emulated",
      layout.exchange_bytes, layout.num_slices, layout.slice_bytes / 1024);
  return Blob();
}

FailureActions NodeCommunicator::failure_actions() {
  // `left` does nothing: a waiting call finds out by itself that a missing rank has left.
  return {.fail = [team = team_.get()](const Status& status) { team->fail(status); }, .left = [](Rank) {}};
}

Result<Blob> NodeCommunicator::allocate(const std::vector<Blob>& /*offers*/) {
  Blob blob(sizeof(node::NodeName));
  const node::NodeName name = team_->segment().name();
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
