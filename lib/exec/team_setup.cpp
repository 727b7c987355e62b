#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "lib/exec/team_impl.hpp"

namespace hips::exec {
namespace {

Status destroyed() noexcept {
  Status status;
  status.code = Code::kAborted;
  status.scope = Scope::kCommunicator;
  try {
    status.message = "the communicator was destroyed";
  } catch (const std::bad_alloc&) {
    status.message = "destroyed";  // short enough to need no allocation
  }
  return status;
}

/// What there is no memory to give back is not used again. False then.
template <typename GiveBack>
bool or_never(const GiveBack& give_back) noexcept {
  try {
    give_back();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

Result<std::unique_ptr<Team>> Team::create(Engine& engine, Config config) {
  auto team = std::make_unique<TeamImpl>(*engine.impl_, std::move(config));
  if (Status status = team->check(); !status.ok()) return hips::fail(std::move(status));
  return team;
}

TeamImpl::TeamImpl(EngineImpl& engine, Config config)
    : engine_(engine), trace_sink_(config.traced ? engine.trace : nullptr), config_(std::move(config)) {
  channels_.by_nic = config_.arrives_by_same_nic;
  for (const Config::RankPlan& plan : config_.plans) channels_.add(*plan.shape, plan.program());
  programs_.resize(config_.plans.size());
  num_programs_ = static_cast<std::int32_t>(programs_.size());
  left_.assign(static_cast<std::size_t>(std::max(0, config_.size)), false);
  const std::lock_guard driving(engine_);
  engine_.teams.push_back(this);
}

TeamImpl::~TeamImpl() {
  const std::lock_guard driving(engine_);
  end_all(destroyed());
  std::erase(engine_.teams, this);
  std::erase(engine_.active, this);
  // Completions of this team's requests may still arrive, but no operation waits for them. Until then the NIC may read what they
  // send, also again, to retransmit a lost packet.
  for (std::uint32_t index = 0; index < engine_.posted.size(); ++index) {
    Posted& posted = engine_.posted[index];
    if (posted.team != this) continue;
    posted.operation = nullptr;
    posted.team = nullptr;
    if (!or_never([&] { engine_.still_read.emplace(index, still_read_); })) still_read_->itself = still_read_;
  }
  or_never([&] { give_back_slots(); });
  // Grant cells are reused only as grant cells, because late grants may still arrive.
  or_never([&] { engine_.grant_arena.release(grant_cells_); });
  const bool is_whole = !ended_by_failure_ && !failed();
  if (still_read_) {
    for (OutChannel& channel : out_) still_read_->headers.push_back(std::move(channel.headers));
    still_read_->grant_sources = grant_sources_;
    if (!config_.phantom && is_whole) still_read_->send_memory = send_memory_;
  }
  if (config_.phantom) {
    for (const auto& [transport, region] : phantom_regions_) transport->deregister(region.local);
  } else if (is_whole) {
    or_never([&] { engine_.arena.release(staging_); });
  } else {
    or_never([&] {
      EngineImpl::AbandonedStaging abandoned{{staging_, send_memory_}, {}};
      for (const UsedConnection& used : connections_) abandoned.connections.push_back(used.connection);
      engine_.abandoned.push_back(std::move(abandoned));
    });
  }
  still_read_.reset();  // while the engine is locked
}

std::int32_t TeamImpl::add_program(std::shared_ptr<const PlanShape> shape,
                                   std::shared_ptr<const Program> program) {
  CompiledProgram compiled = CompiledProgram::of(std::move(shape), std::move(program), channels_);
  // The thread that drives progress adds the program before the operation that needs it. That may be this
  // thread, in a callback.
  const std::lock_guard lock(control_mutex_);
  new_programs_.push_back(std::move(compiled));
  has_new_programs_.store(true, std::memory_order_release);
  return num_programs_++;
}

void TeamImpl::give_back_slots() {
  if (slot_base_ < 0) return;
  engine_.slots.release(static_cast<std::uint32_t>(slot_base_), num_slots_);
  slot_base_ = -1;
}

Status TeamImpl::check() {
  if (config_.plans.empty()) return Status::error(Code::kInternal, "team: at least one plan is needed");
  if (config_.credits < 0 || config_.credits > static_cast<std::int32_t>(SlotToken::kMaxCredits)) {
    return Status::error(Code::kInvalidArgument,
                         fmt::format("credits: {} is out of range; expected 1 to {}, or 0 for the default",
                                     config_.credits, SlotToken::kMaxCredits));
  }
  for (const auto* keys : {&channels_.in, &channels_.out}) {
    for (const ChannelKey& key : *keys) {
      if (key.peer < 0 || key.peer >= config_.size || key.peer == config_.rank) {
        return Status::error(Code::kInternal,
                             fmt::format("plan: rank {} has a channel to rank {}; the team has {} ranks",
                                         config_.rank, key.peer, config_.size));
      }
      if (routes_.contains(key.peer)) continue;
      auto route = config_.route_to(key.peer);
      if (!route) return route.error();
      if (route->by_rail.empty() || route->by_peer_rail.empty()) {
        return Status::error(Code::kUnsupported,
                             fmt::format("no transport reaches rank {} from rank {}", key.peer, config_.rank),
                             Scope::kCommunicator);
      }
      routes_.emplace(key.peer, *std::move(route));
    }
  }
  config_.route_to = {};  // it may refer to what lives until here
  return Status::success();
}

bool TeamImpl::needs_send_slots(Rank rank) const {
  if (config_.phantom) return false;
  const Route& route = routes_.at(rank);
  return std::any_of(route.by_rail.begin(), route.by_rail.end(),
                     [](const auto* transport) { return transport->query().needs_local_registration; });
}

Status TeamImpl::unreached(Rank rank, Rail rail, Status status) const {
  status.rank = rank;
  status.rail = rail;
  status.message = fmt::format("cannot reach rank {}: {}", rank, status.message);
  return status;
}

Status TeamImpl::disagreement(const ChannelKey& key) const {
  return Status::error(
      Code::kMismatch,
      fmt::format("plan: rank {} and rank {} disagree about lane {}", config_.rank, key.peer, key.lane),
      Scope::kCommunicator);
}

std::size_t TeamImpl::best_segment_bytes() const {
  std::size_t best = transport::Limits{}.best_segment_bytes;
  for (const auto& [peer, route] : routes_) {
    for (const auto* transport : route.by_rail) best = std::min(best, transport->query().best_segment_bytes);
  }
  return best;
}

std::int32_t TeamImpl::best_credits() const {
  std::int32_t best = transport::Limits{}.best_credits;
  for (const auto& [peer, route] : routes_) {
    for (const auto* transport : route.by_rail) best = std::max(best, transport->query().best_credits);
  }
  return best;
}

}  // namespace hips::exec
