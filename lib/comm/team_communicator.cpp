#include "lib/comm/team_communicator.hpp"

#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/setup/reach.hpp"
#include "lib/comm/setup/team_maker.hpp"

namespace hips::comm {

using log::Subsystem;

TeamCommunicator::~TeamCommunicator() {
  if (in_forked_child()) {
    // All of this belongs to the parent; closing it would disturb the peers.
    (void)team_.release();
    new std::shared_ptr<ProcessEngine>(std::move(engine_));
    return;
  }
  leave();
}

Result<Blob> TeamCommunicator::make(const Design& design, const std::vector<ProcessInfo>& processes,
                                    std::uint64_t id) {
  auto choices = choose_plans(design, rank(), medium_between(config_.transport, processes));
  if (!choices) return fail(choices.error());
  auto made = make_team({.config = config_,
                         .clock = clock_,
                         .rank = rank(),
                         .id = id,
                         .topology = design.topology,
                         .processes = processes,
                         .nics = design.wiring ? &design.wiring->nics : nullptr,
                         .choices = *choices,
                         .on_error = [watch = watch_.get()](const Status& status) { watch->found(status); }});
  if (!made) return fail(made.error());
  engine_ = std::move(made->engine);
  team_ = std::move(made->team);
  plans_.emplace(*choices, rank());
  backend_ = fmt::format("{}", fmt::join(made->transports, ","));
  description_ =
      fmt::format("{} on {}; {}; {}", describe_choices(*choices), design.topology.name,
                  fmt::join(made->transports, ", "), describe_emulation(design.topology, processes));
  return team_->offer();
}

FailureActions TeamCommunicator::failure_actions() {
  return {.fail = [team = team_.get()](const Status& status) { team->fail(status); },
          .left = [team = team_.get()](Rank rank) { team->peer_left(rank); }};
}

Result<Blob> TeamCommunicator::allocate(const std::vector<Blob>& offers) {
  return team_->allocate(offers);
}

Status TeamCommunicator::connect(const std::vector<Blob>& addresses) {
  if (team_->send_slot_bytes() > 0)
    log::info(Subsystem::kTransport,
              "registered staging: {} KiB to receive, {} KiB to send, segments of {} KiB",
              team_->staging_bytes() / 1024, team_->send_slot_bytes() / 1024, team_->segment_bytes() / 1024);
  return team_->connect(addresses);
}

TeamParts TeamCommunicator::parts() {
  return {.engine = engine_->engine,
          .team = *team_,
          .plans = *plans_,
          .buffers = buffers_,
          .rank = rank(),
          .size = size(),
          .by_rank = config_.reproducible == Reproducible::kAny};
}

Status TeamCommunicator::run(const CallArgs& args) {
  TeamCall call(parts());
  if (Status status = call.set(args); !status.ok()) return status;
  if (Status status = try_start(call); !status.ok()) return status;
  return wait(call);
}

std::unique_ptr<PendingCall> TeamCommunicator::make_call() {
  return std::make_unique<TeamCall>(parts());
}

void TeamCommunicator::advance() {
  engine_->engine.try_progress();
}

Clock& TeamCommunicator::clock() const {
  return engine_->engine.clock();
}

}  // namespace hips::comm
