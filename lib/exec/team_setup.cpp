#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>

#include "lib/exec/blob.hpp"
#include "lib/exec/team_impl.hpp"

namespace hips::exec {
namespace {

constexpr std::uint32_t kOfferMagic = kWireMagic ^ 0x4f464652U;
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kMinSegmentBytes = 1024;
static_assert(kMinSegmentBytes >= kMaxElementBytes);

/// First exchange: what all ranks must agree on before memory is laid out, and the NIC of each channel. The
/// entries of the in-channels follow, then those of the out-channels, then the rank's connections.
struct Offer {
  std::uint32_t magic = kOfferMagic;
  /// The larger of the number of in-channels and of out-channels with send slots.
  std::uint32_t channels = 0;
  std::uint32_t credits = 0;
  std::uint32_t num_in = 0, num_out = 0;
  /// The user has set the number of credits; otherwise it may be reduced.
  std::uint32_t credits_are_named = 0;
  std::uint64_t max_segment_bytes = 0;
  std::uint64_t max_staging_bytes = 0;
};
struct RailEntry {
  std::int32_t peer, lane, path, rail;
};

/// Second exchange: entries for each channel and each endpoint of a rank.
struct InEntry {
  std::int32_t peer, lane, path, rail;
  std::uint32_t slot_base, reserved;
  std::uint64_t offset;
};
struct OutEntry {
  std::int32_t peer, lane, path, rail;
  std::uint32_t credit_slot, generation;
  std::uint32_t grant_slot, grant_generation;
  std::uint32_t takes_grants, reserved;
  std::uint64_t grant_offset;  ///< offset of the first of its two cells
};
struct EndpointEntry {
  std::int32_t peer, rail, peer_rail;
  std::uint32_t incarnation;
  transport::RemoteRegion region, grant_cells;
};

// Segments are not made smaller for the sake of more credits than the smallest number that any transport
// prefers.
std::uint32_t affordable_credits(const Offer& offer, std::uint32_t credits) {
  const auto fewest = static_cast<std::uint32_t>(transport::Limits{}.best_credits);
  if (offer.credits_are_named != 0 || credits <= fewest) return credits;
  const std::uint64_t bytes = offer.channels * (offer.max_segment_bytes + sizeof(WireHeader));
  const std::uint64_t room = bytes == 0 ? credits : offer.max_staging_bytes / bytes;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(room, fewest, credits));
}

}  // namespace

Result<std::unique_ptr<Team>> Team::create(Engine& engine, Config config) {
  auto team = std::make_unique<TeamImpl>(*engine.impl_, std::move(config));
  if (Status status = team->check(); !status.ok()) return hips::fail(std::move(status));
  return team;
}

TeamImpl::TeamImpl(EngineImpl& engine, Config config)
    : engine_(engine), trace_sink_(config.traced ? engine.trace : nullptr), config_(std::move(config)) {
  channels_ = ChannelTable::of(config_.arrives_by_same_nic, config_.shapes, config_.programs);
  for (std::size_t i = 0; i < config_.programs.size(); ++i) {
    programs_.push_back(CompiledProgram::of(config_.shapes[i], config_.programs[i], channels_));
  }
  num_programs_ = static_cast<std::int32_t>(programs_.size());
  left_.assign(static_cast<std::size_t>(std::max(0, config_.size)), false);
  const std::lock_guard driving(engine_);
  engine_.teams.push_back(this);
}

TeamImpl::~TeamImpl() {
  const std::lock_guard driving(engine_);
  end_all(Status::error(Code::kAborted, "the communicator was destroyed", Scope::kCommunicator));
  std::erase(engine_.teams, this);
  std::erase(engine_.active, this);
  // Completions of this team's requests may still arrive, but no operation waits for them. Until then the NIC may read what they
  // send, also again, to retransmit a lost packet.
  auto still_read = std::make_shared<EngineImpl::StillRead>(engine_);
  for (std::uint32_t index = 0; index < engine_.posted.size(); ++index) {
    Posted& posted = engine_.posted[index];
    if (posted.team != this) continue;
    posted.operation = nullptr;
    posted.team = nullptr;
    engine_.still_read.emplace(index, still_read);
  }
  for (OutChannel& channel : out_) still_read->headers.push_back(std::move(channel.headers));
  still_read->grant_sources = grant_sources_;
  give_back_slots();
  // Grant cells are reused only as grant cells, because late grants may still arrive.
  engine_.grant_arena.release(grant_cells_);
  if (config_.phantom) {
    for (const auto& [transport, region] : phantom_regions_) transport->deregister(region.local);
  } else if (!ended_by_failure_) {
    engine_.arena.release(staging_);
    still_read->send_memory = send_memory_;
  } else {
    EngineImpl::AbandonedStaging abandoned{{staging_, send_memory_}, {}};
    for (const UsedConnection& used : connections_) abandoned.connections.push_back(used.connection);
    engine_.abandoned.push_back(std::move(abandoned));
  }
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

Status TeamImpl::check() const {
  if (config_.programs.empty() || config_.programs.size() != config_.shapes.size()) {
    return Status::error(Code::kInternal, "team: programs and shapes must be equally many, and at least one");
  }
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
      const Route& route = config_.routes.at(static_cast<std::size_t>(key.peer));
      if (route.by_rail.empty() || route.by_peer_rail.empty()) {
        return Status::error(Code::kUnsupported,
                             fmt::format("no transport reaches rank {} from rank {}", key.peer, config_.rank),
                             Scope::kCommunicator);
      }
    }
  }
  return Status::success();
}

bool TeamImpl::needs_send_slots(Rank rank) const {
  if (config_.phantom) return false;
  const Route& route = config_.routes[static_cast<std::size_t>(rank)];
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

Rail TeamImpl::arrival_rail(std::int32_t channel) const {
  for (const CompiledProgram& compiled : programs_) {
    for (const Receive& receive : compiled.receives[channel]) {
      return compiled.program->sources[receive.source].rail;
    }
  }
  return kNoRail;
}

Rail TeamImpl::departure_rail(std::int32_t channel) const {
  for (const CompiledProgram& compiled : programs_) {
    for (const StepId step : compiled.sends[channel]) return compiled.program->steps[step].rail;
  }
  return kNoRail;
}

std::size_t TeamImpl::best_segment_bytes() const {
  std::size_t best = transport::Limits{}.best_segment_bytes;
  for (const Route& route : config_.routes) {
    for (const auto* transport : route.by_rail) best = std::min(best, transport->query().best_segment_bytes);
  }
  return best;
}

std::int32_t TeamImpl::best_credits() const {
  std::int32_t best = transport::Limits{}.best_credits;
  for (const Route& route : config_.routes) {
    for (const auto* transport : route.by_rail) best = std::max(best, transport->query().best_credits);
  }
  return best;
}

Blob TeamImpl::offer() {
  BlobWriter writer;
  Offer offer;
  std::size_t departing = 0;
  for (const ChannelKey& key : channels_.out) departing += needs_send_slots(key.peer) ? 1 : 0;
  offer.channels = static_cast<std::uint32_t>(std::max(channels_.in.size(), departing));
  offer.credits = static_cast<std::uint32_t>(config_.credits > 0 ? config_.credits : best_credits());
  offer.credits_are_named = config_.credits > 0;
  offer.max_segment_bytes = config_.max_segment_bytes > 0 ? config_.max_segment_bytes : best_segment_bytes();
  offer.max_staging_bytes = config_.max_staging_bytes;
  offer.num_in = static_cast<std::uint32_t>(channels_.in.size());
  offer.num_out = static_cast<std::uint32_t>(channels_.out.size());
  writer.put(offer);
  for (std::int32_t c = 0; const ChannelKey& key : channels_.in)
    writer.put(RailEntry{key.peer, key.lane, key.path, arrival_rail(c++)});
  for (std::int32_t c = 0; const ChannelKey& key : channels_.out)
    writer.put(RailEntry{key.peer, key.lane, key.path, departure_rail(c++)});
  const std::lock_guard driving(engine_);
  offer_connections(writer);
  return writer.take();
}

Result<Blob> TeamImpl::allocate(std::span<const Blob> offers) {
  if (offers.size() != static_cast<std::size_t>(config_.size)) {
    return hips::fail(Code::kInternal, "team: one offer per rank is needed");
  }
  // The peer's rail of each of our channels.
  std::vector<std::optional<Rail>> in_from(channels_.in.size()), out_to(channels_.out.size());
  std::uint32_t credits = 0;
  for (const Blob& blob : offers) credits = std::max(credits, BlobReader(blob).get<Offer>().credits);
  for (const Blob& blob : offers)
    credits = std::min(credits, affordable_credits(BlobReader(blob).get<Offer>(), credits));
  config_.credits = static_cast<std::int32_t>(std::clamp<std::uint32_t>(credits, 1, SlotToken::kMaxCredits));

  // All ranks use the same segment size, so the rank with the least staging for each slot determines it.
  std::size_t segment = SIZE_MAX;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    BlobReader reader(offers[rank]);
    const auto offer = reader.get<Offer>();
    if (!reader.ok() || offer.magic != kOfferMagic) {
      return hips::fail(Code::kMismatch, fmt::format("rank {} runs another version of the library", rank),
                        Scope::kCommunicator);
    }
    const std::size_t slots = std::max<std::size_t>(1, std::size_t{offer.channels} * credits);
    const std::size_t share = offer.max_staging_bytes / slots;
    segment = std::min({segment, static_cast<std::size_t>(offer.max_segment_bytes),
                        share > sizeof(WireHeader) ? share - sizeof(WireHeader) : 0});
    for (std::uint32_t i = 0; i < offer.num_in + offer.num_out && reader.ok(); ++i) {
      const auto entry = reader.get<RailEntry>();
      if (entry.peer != config_.rank) continue;
      const ChannelKey key{static_cast<Rank>(rank), entry.lane, entry.path};
      const bool we_send = i < offer.num_in;
      const std::int32_t channel = we_send ? channels_.find_out(key) : channels_.find_in(key);
      if (channel < 0) return hips::fail(disagreement(key));
      (we_send ? out_to : in_from)[static_cast<std::size_t>(channel)] = entry.rail;
    }
    take_connections(reader);
  }
  for (std::size_t c = 0; c < in_from.size(); ++c) {
    if (!in_from[c]) return hips::fail(disagreement(channels_.in[c]));
  }
  for (std::size_t c = 0; c < out_to.size(); ++c) {
    if (!out_to[c]) return hips::fail(disagreement(channels_.out[c]));
  }
  segment_bytes_ = std::max(kMinSegmentBytes, segment / kCacheLine * kCacheLine);
  slot_stride_ = sizeof(WireHeader) + segment_bytes_;

  credits = static_cast<std::uint32_t>(config_.credits);
  const auto num_in = static_cast<std::uint32_t>(channels_.in.size());
  const auto num_out = static_cast<std::uint32_t>(channels_.out.size());
  const std::size_t bytes = std::size_t{num_in} * credits * slot_stride_;

  const std::lock_guard driving(engine_);

  num_slots_ = num_in * credits + 2 * num_out;  // two slots for each out-channel: credits and grants
  slot_base_ = engine_.slots.allocate(num_slots_);
  if (slot_base_ < 0) {
    return hips::fail(
        Code::kOutOfMemory,
        fmt::format("all {} receive slots are in use; destroy communicators or lower HIPS_CREDITS",
                    SlotToken::kMaxSlots),
        Scope::kProcess);
  }
  std::set<transport::Transport*> used;
  for (const Route& route : config_.routes) used.insert(route.by_rail.begin(), route.by_rail.end());
  const std::vector<transport::Transport*> transports(used.begin(), used.end());
  if (config_.phantom) {
    for (transport::Transport* transport : transports) {
      auto region = transport->register_memory({.address = nullptr,
                                                .bytes = std::max<std::size_t>(1, bytes),
                                                .kind = transport::MemoryKind::kPhantom});
      if (!region) return hips::fail(std::move(region).error());
      phantom_regions_.emplace(transport, *region);
    }
  } else {
    auto staging = engine_.arena.allocate(bytes, transports);
    if (!staging) return hips::fail(std::move(staging).error());
    staging_ = *staging;
    std::size_t num_departing = 0;
    for (const ChannelKey& key : channels_.out) num_departing += needs_send_slots(key.peer) ? 1 : 0;
    if (num_departing > 0) {
      auto paths = engine_.arena.allocate(num_departing * credits * slot_stride_, transports);
      if (!paths) return hips::fail(std::move(paths).error());
      send_memory_ = *paths;
    }
  }
  std::byte* send_slots = send_memory_.data();
  std::vector<transport::Transport*> distant;
  std::copy_if(transports.begin(), transports.end(), std::back_inserter(distant),
               [](const auto* transport) { return !transport->query().attaches_memory; });
  if (!config_.phantom && !distant.empty()) {
    auto cells = engine_.grant_arena.allocate(num_out * kGrantTurns * sizeof(Grant), distant);
    if (!cells) return hips::fail(std::move(cells).error());
    grant_cells_ = *cells;
    auto sources = engine_.grant_arena.allocate(num_in * kGrantTurns * sizeof(Grant), distant);
    if (!sources) return hips::fail(std::move(sources).error());
    grant_sources_ = *sources;
  }

  BlobWriter writer;
  writer.put(num_in);
  auto slot = static_cast<std::uint32_t>(slot_base_);
  std::set<std::tuple<Rank, Rail, Rail>> endpoints;  // (rank, our rail, its rail)
  in_.resize(num_in);
  for (std::uint32_t c = 0; c < num_in; ++c) {
    InChannel& channel = in_[c];
    const Route& route = config_.routes[static_cast<std::size_t>(channels_.in[c].peer)];
    const Rail rail = arrival_rail(static_cast<std::int32_t>(c));
    channel.key = channels_.in[c];
    channel.peer = route.peer(*in_from[c]);
    channel.port = engine_.port_of(route.transport(rail));
    channel.staging_offset = staging_.offset + std::size_t{c} * credits * slot_stride_;
    channel.staging = config_.phantom ? nullptr : staging_.data() + std::size_t{c} * credits * slot_stride_;
    channel.slot_base = slot;
    channel.back = config_.phantom ? -1 : channels_.find_out(channel.key);
    channel.slots.assign(credits, InChannel::Slot::kEmpty);
    writer.put(
        InEntry{channel.key.peer, channel.key.lane, channel.key.path, rail, slot, 0, channel.staging_offset});
    for (std::uint32_t i = 0; i < credits; ++i, ++slot) {
      SlotTable::Entry& entry = engine_.slots[slot];
      entry.team = this;
      entry.channel = static_cast<std::int32_t>(c);
      entry.index = static_cast<std::int32_t>(i);
      writer.put(entry.generation);
    }
    endpoints.emplace(channel.key.peer, rail, *in_from[c]);
  }
  writer.put(num_out);
  out_.resize(num_out);
  for (std::uint32_t c = 0; c < num_out; ++c, ++slot) {
    OutChannel& channel = out_[c];
    const Route& route = config_.routes[static_cast<std::size_t>(channels_.out[c].peer)];
    const Rail rail = departure_rail(static_cast<std::int32_t>(c));
    channel.key = channels_.out[c];
    channel.peer = route.peer(*out_to[c]);
    channel.back = config_.phantom ? -1 : channels_.find_in(channel.key);
    const bool staged = needs_send_slots(channel.key.peer);
    if (staged) {
      channel.send_slots = send_slots;
      channel.sending.assign(credits, 0);
      send_slots += credits * slot_stride_;
    }
    for (transport::Transport* transport : route.by_rail) {
      SendPath path{.port = engine_.port_of(transport)};
      if (staged && transport->query().needs_local_registration) {
        auto registered = engine_.arena.region(send_memory_, transport);
        if (!registered) return hips::fail(std::move(registered).error());
        path.slots = registered->local;
        if (std::find(registering_.begin(), registering_.end(), path.port) == registering_.end())
          registering_.push_back(path.port);
      }
      channel.by_rail.push_back(path);
    }
    channel.credit_slot = slot;
    SlotTable::Entry& entry = engine_.slots[slot];
    entry.team = this;
    entry.channel = static_cast<std::int32_t>(c);
    entry.index = SlotTable::kCredits;
    const bool granted = takes_grants(channel.key.peer, rail);
    const std::size_t cells = c * kGrantTurns * sizeof(Grant);
    if (granted) {
      channel.grant_cells = grant_cells_.data() + cells;
      // Clear the cells: an earlier team of this process may have left a valid grant there (in tests, with
      // the same id).
      std::memset(channel.grant_cells, 0, kGrantTurns * sizeof(Grant));
    }
    SlotTable::Entry& grants = engine_.slots[slot + num_out];
    grants.team = this;
    grants.channel = static_cast<std::int32_t>(c);
    grants.index = SlotTable::kGrant;
    writer.put(OutEntry{channel.key.peer, channel.key.lane, channel.key.path, rail, slot, entry.generation,
                        slot + num_out, grants.generation, granted ? 1U : 0U, 0,
                        grant_cells_.offset + cells});
    endpoints.emplace(channel.key.peer, rail, *out_to[c]);
  }
  writer.put(static_cast<std::uint32_t>(endpoints.size()));
  for (const auto& [rank, rail, peer_rail] : endpoints) {
    const Route& route = config_.routes[rank];
    transport::Transport* transport = route.transport(rail);
    auto connection = open_connection(rank, rail, peer_rail);
    if (!connection) return hips::fail(std::move(connection).error());
    transport::RemoteRegion region;
    if (config_.phantom) {
      region = phantom_regions_.at(transport).remote;
    } else {
      auto registered = engine_.arena.region(staging_, transport);
      if (!registered) return hips::fail(std::move(registered).error());
      region = registered->remote;
    }
    transport::RemoteRegion cells{};
    if (takes_grants(rank, rail)) {
      auto registered = engine_.grant_arena.region(grant_cells_, transport);
      if (!registered) return hips::fail(std::move(registered).error());
      cells = registered->remote;
    }
    writer.put(EndpointEntry{rank, rail, peer_rail, (*connection)->incarnation, region, cells});
    writer.put_bytes((*connection)->address);
  }
  offered_connections_ = {};
  return writer.take();
}

Status TeamImpl::connect(std::span<const Blob> addresses) {
  if (addresses.size() != static_cast<std::size_t>(config_.size)) {
    return Status::error(Code::kInternal, "team: one address per rank is needed");
  }
  const std::lock_guard driving(engine_);

  std::vector<bool> peers(addresses.size(), false);
  for (const InChannel& channel : in_) peers[channel.key.peer] = true;
  for (const OutChannel& channel : out_) peers[channel.key.peer] = true;

  for (Rank rank = 0; rank < config_.size; ++rank) {
    if (!peers[rank]) continue;
    // The entries of the peer's blob that concern this rank.
    struct In {
      InEntry entry;
      std::vector<std::uint8_t> generations;
    };
    std::vector<In> ins;
    std::vector<OutEntry> outs;
    std::vector<std::pair<EndpointEntry, transport::Address>> endpoints;
    BlobReader reader(addresses[rank]);
    const auto num_in = reader.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < num_in && reader.ok(); ++i) {
      In in{reader.get<InEntry>(), {}};
      for (std::int32_t k = 0; k < config_.credits; ++k) in.generations.push_back(reader.get<std::uint8_t>());
      if (in.entry.peer == config_.rank) ins.push_back(std::move(in));
    }
    const auto num_out = reader.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < num_out && reader.ok(); ++i) {
      const auto out = reader.get<OutEntry>();
      if (out.peer == config_.rank) outs.push_back(out);
    }
    const auto num_endpoints = reader.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < num_endpoints && reader.ok(); ++i) {
      const auto endpoint = reader.get<EndpointEntry>();
      const auto address = reader.get_bytes();
      if (endpoint.peer == config_.rank)
        endpoints.emplace_back(endpoint, transport::Address(address.begin(), address.end()));
    }
    if (!reader.ok()) {
      return Status::error(Code::kMismatch, fmt::format("rank {} sent a malformed address", rank),
                           Scope::kCommunicator);
    }
    // Connects our endpoint on `rail` with the peer's endpoint on `peer_rail`. Returns the peer's regions
    // there.
    const auto join = [&](Rail rail, Rail peer_rail,
                          const Connection*& connection) -> Result<const PeerRegions*> {
      const auto theirs = std::find_if(endpoints.begin(), endpoints.end(), [&](const auto& e) {
        return e.first.rail == peer_rail && e.first.peer_rail == rail;
      });
      if (theirs == endpoints.end()) return hips::fail(disagreement({rank, -1}));
      auto joined = join_connection(rank, rail, peer_rail, theirs->first.incarnation, theirs->second);
      if (!joined) return hips::fail(std::move(joined).error());
      connection = *joined;
      return &remote_regions_.emplace_back(PeerRegions{theirs->first.region, theirs->first.grant_cells});
    };

    for (OutChannel& channel : out_) {
      if (channel.key.peer != rank) continue;
      const auto in = std::find_if(ins.begin(), ins.end(), [&](const In& i) {
        return i.entry.lane == channel.key.lane && i.entry.path == channel.key.path;
      });
      if (in == ins.end()) return disagreement(channel.key);
      const auto index = static_cast<std::int32_t>(&channel - out_.data());
      auto regions = join(departure_rail(index), in->entry.rail, channel.connection);
      if (!regions) return std::move(regions).error();
      channel.remote = &(*regions)->staging;
      channel.remote_offset = in->entry.offset;
      channel.remote_slot_base = in->entry.slot_base;
      channel.remote_generation = in->generations;
      channel.num_slots = static_cast<std::uint32_t>(in->generations.size());
      channel.credits = channel.num_slots;
      channel.headers.resize(channel.num_slots * sizeof(WireHeader));
    }
    for (InChannel& channel : in_) {
      if (channel.key.peer != rank) continue;
      const auto out = std::find_if(outs.begin(), outs.end(), [&](const OutEntry& o) {
        return o.lane == channel.key.lane && o.path == channel.key.path;
      });
      if (out == outs.end()) return disagreement(channel.key);
      const auto index = static_cast<std::int32_t>(&channel - in_.data());
      const Rail rail = arrival_rail(index);
      auto regions = join(rail, out->rail, channel.connection);
      if (!regions) return std::move(regions).error();
      channel.credit_token = SlotToken{out->credit_slot, out->generation, 0}.pack();
      if (out->takes_grants == 0 || !takes_grants(rank, rail)) continue;
      transport::Transport* transport = channel.port->transport.get();
      channel.grant_cells = &(*regions)->grant_cells;
      channel.grant_offset = out->grant_offset;
      channel.grant_token = SlotToken{out->grant_slot, out->grant_generation, 0}.pack();
      channel.grant_sources =
          grant_sources_.data() + static_cast<std::size_t>(index) * kGrantTurns * sizeof(Grant);
      if (transport->query().needs_local_registration) {
        auto registered = engine_.grant_arena.region(grant_sources_, transport);
        if (!registered) return std::move(registered).error();
        channel.grant_memory = registered->local;
      }
    }
  }
  return Status::success();
}

}  // namespace hips::exec
