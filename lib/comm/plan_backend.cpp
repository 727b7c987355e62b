#include "lib/comm/plan_backend.hpp"

#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/comm/setup/design.hpp"
#include "lib/comm/setup/reach.hpp"
#include "lib/comm/setup/team_maker.hpp"

namespace hips::comm {

using log::Subsystem;

Result<Outbound> PlanBackend::make(const Design& design, const std::vector<ProcessInfo>& processes,
                                   std::uint64_t id) {
  auto choices = choose_plans(design, rank(), medium_between(config().transport, processes));
  if (!choices) return fail(choices.error());
  auto made = make_team({.config = config(),
                         .clock = context_.clock,
                         .rank = rank(),
                         .id = id,
                         .topology = design.topology,
                         .processes = processes,
                         .nics = design.wiring ? &design.wiring->nics : nullptr,
                         .choices = *choices,
                         .on_error = context_.on_error});
  if (!made) return fail(made.error());
  engine_ = std::move(made->engine);
  team_ = std::move(made->team);
  plans_.emplace(*choices, rank());
  name_ = fmt::format("{}", fmt::join(made->transports, ","));
  description_ = fmt::format("{} on {}; {}; {}", describe_choices(*choices), design.topology.name,
                             fmt::join(made->transports, ", "), describe_emulation(design, processes));
  return team_->offer();
}

FailureActions PlanBackend::failure_actions() {
  return {.fail = [team = team_.get()](const Status& status) { team->fail(status); },
          .left = [team = team_.get()](Rank rank) { team->peer_left(rank); }};
}

Result<Outbound> PlanBackend::allocate(const Inbound& offers) {
  return team_->allocate(offers);
}

Status PlanBackend::connect(const Inbound& addresses) {
  if (team_->send_slot_bytes() > 0)
    log::info(Subsystem::kTransport,
              "registered staging: {} KiB to receive, {} KiB to send, segments of {} KiB",
              team_->staging_bytes() / 1024, team_->send_slot_bytes() / 1024, team_->segment_bytes() / 1024);
  return team_->connect(addresses);
}

TeamParts PlanBackend::parts() {
  return {.engine = engine_->engine,
          .team = *team_,
          .plans = *plans_,
          .buffers = buffers_,
          .rank = rank(),
          .size = size(),
          .by_rank = config().reproducible == Reproducible::kAny};
}

Status PlanBackend::run(const CallArgs& args, Communicator& caller) {
  TeamCall call(parts());
  return caller.finish_blocking(call, args);
}

std::unique_ptr<PendingCall> PlanBackend::make_call() {
  return std::make_unique<TeamCall>(parts());
}

void PlanBackend::advance() {
  engine_->engine.try_progress();
}

Clock& PlanBackend::clock() const {
  return engine_->engine.clock();
}

}  // namespace hips::comm
