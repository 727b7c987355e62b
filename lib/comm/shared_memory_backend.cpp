#include "lib/comm/shared_memory_backend.hpp"

#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "lib/base/type_text.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/design.hpp"

namespace hips::comm {

bool SharedMemoryBackend::serves(const Design& design, const Config& config,
                                 const std::vector<ProcessInfo>& processes) {
  return !design.named && config.transport == "auto" && processes.size() <= kMostRanks &&
         all_on_one_node(processes);
}

Result<Outbound> SharedMemoryBackend::make(const Design& /*design*/,
                                           const std::vector<ProcessInfo>& processes, std::uint64_t id) {
  met_ = std::make_shared<const std::vector<ProcessInfo>>(processes);
  places_.resize(processes.size());
  std::iota(places_.begin(), places_.end(), 0);
  // The engine provides clock and trace only; it has no transport.
  auto engine = process_engine({.clock = context_.clock,
                                .spin = spin_limits(*met_, places_),
                                .rank = rank(),
                                .size = size(),
                                .trace_dir = config().trace_dir});
  if (!engine) return fail(engine.error());
  engine_ = std::move(*engine);
  auto segment = node_segment();
  if (!segment) return fail(segment.error());
  if (Status status = make_team(id, *std::move(segment)); !status.ok()) return fail(std::move(status));
  return Outbound();
}

Status SharedMemoryBackend::make_team(std::uint64_t id, std::shared_ptr<node::NodeSegment> segment) {
  auto team = node::NodeTeam::create({.segment = std::move(segment),
                                      .id = id,
                                      .rank = rank(),
                                      .size = size(),
                                      .max_staging_bytes = config().staging_bytes,
                                      .waits = engine_->waits,
                                      .clock = &engine_->engine.clock(),
                                      .trace = engine_->engine.trace(),
                                      .oversubscribed = spin_limits(*met_, places_).oversubscribed(),
                                      .direct = config().node_direct,
                                      .on_error = context_.on_error});
  if (!team) return team.error();
  team_ = std::move(*team);
  calls_.emplace(*team_);
  const node::StagingLayout& layout = team_->layout();
  name_ = "memory";
  description_ = fmt::format(
      "shared memory of one node: up to {} bytes at once, larger calls in {} slices of {} KiB; not emulated",
      layout.exchange_bytes, layout.num_slices, layout.slice_bytes / 1024);
  return Status::success();
}

Result<std::unique_ptr<Backend>> SharedMemoryBackend::derive(std::span<const Rank> members, std::uint64_t id,
                                                             Context context) {
  auto made = std::make_unique<SharedMemoryBackend>(std::move(context));
  made->met_ = met_;
  made->engine_ = engine_;
  for (const Rank member : members) made->places_.push_back(places_[static_cast<std::size_t>(member)]);
  if (Status status = made->make_team(id, team_->segment()); !status.ok()) return fail(std::move(status));
  std::vector<std::shared_ptr<node::NodePeer>> processes;
  for (const Rank member : members) processes.push_back(team_->processes()[static_cast<std::size_t>(member)]);
  made->team_->connect(std::move(processes));
  return made;
}

FailureActions SharedMemoryBackend::failure_actions() {
  // `left` does nothing: a waiting call finds out by itself that a missing rank has left.
  return {.fail = [team = team_.get()](const Status& status) { team->fail(status); }, .left = [](Rank) {}};
}

Result<Outbound> SharedMemoryBackend::allocate(const Inbound& /*offers*/) {
  const node::NodeName name = team_->segment()->name();
  const auto bytes = std::as_bytes(std::span(&name, 1));
  return Outbound{{bytes.begin(), bytes.end()}, {}};
}

Status SharedMemoryBackend::connect(const Inbound& addresses) {
  std::vector<node::NodeName> names(addresses.from_all.size());
  for (std::size_t r = 0; r < names.size(); ++r) {
    const Blob& name = addresses.from_all[r];
    if (name.size() != sizeof(node::NodeName)) return malformed(static_cast<Rank>(r));
    std::memcpy(&names[r], name.data(), sizeof(node::NodeName));
  }
  return team_->connect(names);
}

Status SharedMemoryBackend::refuse(const CallArgs& args) const {
  if (!has_pieces_for_all(args.collective) || team_->layout().holds(size_of(args.type), size()))
    return Status::success();
  return Status::error(
      Code::kUnsupported,
      fmt::format("{}: slices of {} bytes are too small for one element of {} from each of {} ranks; "
                  "raise HIPS_STAGING_BYTES, or use smaller elements",
                  to_string(args.collective), team_->layout().slice_bytes, type_text(args.type), size()));
}

Status SharedMemoryBackend::run(const CallArgs& args, Communicator& caller) {
  NodeCall call(*calls_);
  (void)call.set(args);
  call.start();
  // Fast path: a small call completes after a few polls, which saves setting up the wait.
  if (calls_->poll_briefly(call)) return Status::success();
  return caller.wait(call);
}

std::unique_ptr<PendingCall> SharedMemoryBackend::make_call() {
  return std::make_unique<NodeCall>(*calls_);
}

void SharedMemoryBackend::advance() {
  calls_->advance();
}

Clock& SharedMemoryBackend::clock() const {
  return engine_->engine.clock();
}

}  // namespace hips::comm
