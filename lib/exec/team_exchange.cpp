#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "lib/exec/blob.hpp"
#include "lib/exec/team_impl.hpp"

namespace hips::exec {
namespace {

constexpr std::uint32_t kOfferMagic = kWireMagic ^ 0x4f464652U;
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kMinSegmentBytes = 1024;
static_assert(kMinSegmentBytes >= kMaxElementBytes);

/// First exchange: what all ranks agree on before memory is laid out. Peers also get the NIC of each of their channels, of those in
/// which this rank receives first, and the connections that it has with them.
struct Offer {
  std::uint32_t magic = kOfferMagic;
  /// The larger of the number of in-channels and of out-channels with send slots.
  std::uint32_t channels = 0;
  std::uint32_t credits = 0;
  /// The user has set the number of credits; otherwise it may be reduced.
  std::uint32_t credits_are_named = 0;
  std::uint64_t max_segment_bytes = 0;
  std::uint64_t max_staging_bytes = 0;
};
struct RailEntry {
  std::int32_t lane, path, rail;
};

/// Second exchange: entries for the channels and endpoints of each peer.
struct InEntry {
  std::int32_t lane, path, rail;
  std::uint32_t slot_base;
  std::uint64_t offset;
};
struct OutEntry {
  std::int32_t lane, path, rail;
  std::uint32_t credit_slot, generation;
  std::uint32_t grant_slot, grant_generation;
  std::uint32_t takes_grants;
  std::uint64_t grant_offset;  ///< offset of the first of its two cells
};
struct EndpointEntry {
  std::int32_t rail, peer_rail;
  std::uint32_t incarnation, reserved;
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

Status malformed(Rank rank) {
  return Status::error(Code::kMismatch, fmt::format("rank {} sent a malformed address", rank),
                       Scope::kCommunicator);
}

template <typename Entry>
void put_all(BlobWriter& writer, const std::vector<Entry>& entries) {
  writer.put(static_cast<std::uint32_t>(entries.size()));
  for (const Entry& entry : entries) writer.put(entry);
}

template <typename Entry>
std::vector<Entry> get_all(BlobReader& reader) {
  std::vector<Entry> entries;
  const auto count = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) entries.push_back(reader.get<Entry>());
  return entries;
}

}  // namespace

// ---- First exchange ------------------------------------------------------------------------------------

Outbound TeamImpl::offer() {
  Offer offer;
  std::size_t departing = 0;
  for (const ChannelKey& key : channels_.out) departing += needs_send_slots(key.peer) ? 1 : 0;
  offer.channels = static_cast<std::uint32_t>(std::max(channels_.in.size(), departing));
  offer.credits = static_cast<std::uint32_t>(config_.credits > 0 ? config_.credits : best_credits());
  offer.credits_are_named = config_.credits > 0;
  offer.max_segment_bytes = config_.max_segment_bytes > 0 ? config_.max_segment_bytes : best_segment_bytes();
  offer.max_staging_bytes = config_.max_staging_bytes;
  BlobWriter to_all;
  to_all.put(offer);
  Outbound offers{to_all.take(), {}};
  const std::lock_guard driving(engine_);
  offered_connections_.clear();
  for (const auto& [peer, route] : routes_) {
    std::vector<RailEntry> in, out;
    for (const std::int32_t c : channels_.in_of(peer))
      in.push_back({channels_.in[c].lane, channels_.in[c].path, channels_.in_rails[c]});
    for (const std::int32_t c : channels_.out_of(peer))
      out.push_back({channels_.out[c].lane, channels_.out[c].path, channels_.out_rails[c]});
    const std::vector<ConnectionEntry> connections = connections_to(peer);
    offered_connections_.insert(offered_connections_.end(), connections.begin(), connections.end());
    BlobWriter writer;
    put_all(writer, in);
    put_all(writer, out);
    put_all(writer, connections);
    offers.to_peers.push_back({peer, writer.take()});
  }
  return offers;
}

Status TeamImpl::take_agreement(const std::vector<Blob>& offers) {
  std::vector<Offer> by_rank;
  for (const Blob& blob : offers) {
    BlobReader reader(blob);
    by_rank.push_back(reader.get<Offer>());
    if (!reader.ok() || by_rank.back().magic != kOfferMagic) {
      return Status::error(Code::kMismatch,
                           fmt::format("rank {} runs another version of the library", by_rank.size() - 1),
                           Scope::kCommunicator);
    }
  }
  std::uint32_t credits = 0;
  for (const Offer& offer : by_rank) credits = std::max(credits, offer.credits);
  for (const Offer& offer : by_rank) credits = std::min(credits, affordable_credits(offer, credits));
  config_.credits = static_cast<std::int32_t>(std::clamp<std::uint32_t>(credits, 1, SlotToken::kMaxCredits));
  // All ranks use the same segment size, so the rank with the least staging for each slot determines it.
  std::size_t segment = SIZE_MAX;
  for (const Offer& offer : by_rank) {
    const std::size_t slots = std::max<std::size_t>(1, std::size_t{offer.channels} * credits);
    const std::size_t share = offer.max_staging_bytes / slots;
    segment = std::min({segment, static_cast<std::size_t>(offer.max_segment_bytes),
                        share > sizeof(WireHeader) ? share - sizeof(WireHeader) : 0});
  }
  segment_bytes_ = std::max(kMinSegmentBytes, segment / kCacheLine * kCacheLine);
  slot_stride_ = sizeof(WireHeader) + segment_bytes_;
  return Status::success();
}

Result<TeamImpl::PeerRails> TeamImpl::take_offers(const std::vector<PeerBlob>& offers) {
  std::vector<std::optional<Rail>> in(channels_.in.size()), out(channels_.out.size());
  for (const auto& [peer, blob] : offers) {
    BlobReader reader(blob);
    // The peer sends what we receive.
    const auto receives = get_all<RailEntry>(reader), sends = get_all<RailEntry>(reader);
    const auto connections = get_all<ConnectionEntry>(reader);
    if (!reader.ok()) return hips::fail(malformed(peer));
    for (const RailEntry& entry : receives) {
      const ChannelKey key{peer, entry.lane, entry.path};
      const std::int32_t c = channels_.find_out(key);
      if (c < 0) return hips::fail(disagreement(key));
      out[static_cast<std::size_t>(c)] = entry.rail;
    }
    for (const RailEntry& entry : sends) {
      const ChannelKey key{peer, entry.lane, entry.path};
      const std::int32_t c = channels_.find_in(key);
      if (c < 0) return hips::fail(disagreement(key));
      in[static_cast<std::size_t>(c)] = entry.rail;
    }
    offered_connections_.insert(offered_connections_.end(), connections.begin(), connections.end());
  }
  PeerRails rails;
  for (std::size_t c = 0; c < in.size(); ++c) {
    if (!in[c]) return hips::fail(disagreement(channels_.in[c]));
    rails.in.push_back(*in[c]);
  }
  for (std::size_t c = 0; c < out.size(); ++c) {
    if (!out[c]) return hips::fail(disagreement(channels_.out[c]));
    rails.out.push_back(*out[c]);
  }
  return rails;
}

// ---- Memory and endpoints ------------------------------------------------------------------------------

Result<Outbound> TeamImpl::allocate(const Inbound& offers) {
  if (offers.from_all.size() != static_cast<std::size_t>(config_.size)) {
    return hips::fail(Code::kInternal, "team: one offer per rank is needed");
  }
  if (Status status = take_agreement(offers.from_all); !status.ok()) return hips::fail(std::move(status));
  const auto rails = take_offers(offers.from_peers);
  if (!rails) return hips::fail(rails.error());
  const std::lock_guard driving(engine_);
  still_read_ = std::make_shared<EngineImpl::StillRead>(engine_);
  still_read_->headers.reserve(channels_.out.size());
  if (Status status = allocate_memory(); !status.ok()) return hips::fail(std::move(status));
  in_.resize(channels_.in.size());
  next_base_.assign(in_.size(), 0);
  out_.resize(channels_.out.size());
  std::byte* send_slots = send_memory_.data();
  Outbound addresses;
  for (const auto& [peer, route] : routes_) {
    std::set<std::pair<Rail, Rail>> endpoints;  // (our rail, its rail)
    BlobWriter writer;
    const auto in = channels_.in_of(peer), out = channels_.out_of(peer);
    writer.put(static_cast<std::uint32_t>(in.size()));
    for (const std::int32_t c : in) {
      make_in_channel(c, rails->in[static_cast<std::size_t>(c)], writer);
      endpoints.emplace(channels_.in_rails[c], rails->in[static_cast<std::size_t>(c)]);
    }
    writer.put(static_cast<std::uint32_t>(out.size()));
    for (const std::int32_t c : out) {
      if (Status status = make_out_channel(c, rails->out[static_cast<std::size_t>(c)], send_slots, writer);
          !status.ok())
        return hips::fail(std::move(status));
      endpoints.emplace(channels_.out_rails[c], rails->out[static_cast<std::size_t>(c)]);
    }
    writer.put(static_cast<std::uint32_t>(endpoints.size()));
    for (const auto& [rail, peer_rail] : endpoints)
      if (Status status = offer_endpoint(peer, rail, peer_rail, writer); !status.ok())
        return hips::fail(std::move(status));
    addresses.to_peers.push_back({peer, writer.take()});
  }
  offered_connections_ = {};
  return addresses;
}

std::vector<transport::Transport*> TeamImpl::transports() const {
  std::set<transport::Transport*> used;
  for (const auto& [peer, route] : routes_) used.insert(route.by_rail.begin(), route.by_rail.end());
  return {used.begin(), used.end()};
}

Status TeamImpl::allocate_memory() {
  const auto num_in = static_cast<std::uint32_t>(channels_.in.size());
  const auto num_out = static_cast<std::uint32_t>(channels_.out.size());
  const auto credits = static_cast<std::uint32_t>(config_.credits);
  num_slots_ = num_in * credits + 2 * num_out;  // two slots for each out-channel: credits and grants
  slot_base_ = engine_.slots.allocate(num_slots_);
  if (slot_base_ < 0) {
    return Status::error(
        Code::kOutOfMemory,
        fmt::format("all {} receive slots are in use; destroy communicators or lower HIPS_CREDITS",
                    SlotToken::kMaxSlots),
        Scope::kProcess);
  }
  const std::vector<transport::Transport*> all = transports();
  const std::size_t bytes = std::size_t{num_in} * credits * slot_stride_;
  if (config_.phantom) {
    for (transport::Transport* transport : all) {
      auto region = transport->register_memory({.address = nullptr,
                                                .bytes = std::max<std::size_t>(1, bytes),
                                                .kind = transport::MemoryKind::kPhantom});
      if (!region) return std::move(region).error();
      phantom_regions_.emplace(transport, *region);
    }
    return Status::success();
  }
  auto staging = engine_.arena.allocate(bytes, all);
  if (!staging) return std::move(staging).error();
  staging_ = *staging;
  std::size_t num_departing = 0;
  for (const ChannelKey& key : channels_.out) num_departing += needs_send_slots(key.peer) ? 1 : 0;
  if (num_departing > 0) {
    auto paths = engine_.arena.allocate(num_departing * credits * slot_stride_, all);
    if (!paths) return std::move(paths).error();
    send_memory_ = *paths;
  }
  std::vector<transport::Transport*> distant;
  std::copy_if(all.begin(), all.end(), std::back_inserter(distant),
               [](const auto* transport) { return !transport->query().attaches_memory; });
  if (distant.empty()) return Status::success();
  auto cells = engine_.grant_arena.allocate(num_out * kGrantTurns * sizeof(Grant), distant);
  if (!cells) return std::move(cells).error();
  grant_cells_ = *cells;
  auto sources = engine_.grant_arena.allocate(num_in * kGrantTurns * sizeof(Grant), distant);
  if (!sources) return std::move(sources).error();
  grant_sources_ = *sources;
  return Status::success();
}

void TeamImpl::make_in_channel(std::int32_t c, Rail peer_rail, BlobWriter& writer) {
  const auto index = static_cast<std::size_t>(c);
  const auto credits = static_cast<std::uint32_t>(config_.credits);
  InChannel& channel = in_[index];
  channel.key = channels_.in[index];
  const Route& route = routes_.at(channel.key.peer);
  const Rail rail = channels_.in_rails[c];
  channel.peer = route.peer(peer_rail);
  channel.port = engine_.port_of(route.transport(rail));
  channel.staging_offset = staging_.offset + index * credits * slot_stride_;
  channel.staging = config_.phantom ? nullptr : staging_.data() + index * credits * slot_stride_;
  channel.slot_base = static_cast<std::uint32_t>(slot_base_) + static_cast<std::uint32_t>(c) * credits;
  channel.back = config_.phantom ? -1 : channels_.find_out(channel.key);
  channel.slots.assign(credits, InChannel::Slot::kEmpty);
  writer.put(InEntry{channel.key.lane, channel.key.path, rail, channel.slot_base, channel.staging_offset});
  for (std::uint32_t i = 0; i < credits; ++i) {
    SlotTable::Entry& entry = engine_.slots[channel.slot_base + i];
    entry.team = this;
    entry.channel = c;
    entry.index = static_cast<std::int32_t>(i);
    writer.put(entry.generation);
  }
}

Status TeamImpl::make_out_channel(std::int32_t c, Rail peer_rail, std::byte*& send_slots,
                                  BlobWriter& writer) {
  const auto index = static_cast<std::size_t>(c);
  const auto credits = static_cast<std::uint32_t>(config_.credits);
  OutChannel& channel = out_[index];
  channel.key = channels_.out[index];
  const Route& route = routes_.at(channel.key.peer);
  const Rail rail = channels_.out_rails[c];
  channel.peer = route.peer(peer_rail);
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
      if (!registered) return std::move(registered).error();
      path.slots = registered->local;
      if (std::find(registering_.begin(), registering_.end(), path.port) == registering_.end())
        registering_.push_back(path.port);
    }
    channel.by_rail.push_back(path);
  }
  const auto num_in = static_cast<std::uint32_t>(in_.size()),
             num_out = static_cast<std::uint32_t>(out_.size());
  channel.credit_slot =
      static_cast<std::uint32_t>(slot_base_) + num_in * credits + static_cast<std::uint32_t>(c);
  SlotTable::Entry& entry = engine_.slots[channel.credit_slot];
  entry.team = this;
  entry.channel = c;
  entry.index = SlotTable::kCredits;
  const bool granted = takes_grants(channel.key.peer, rail);
  const std::size_t cells = index * kGrantTurns * sizeof(Grant);
  if (granted) {
    channel.grant_cells = grant_cells_.data() + cells;
    // Clear the cells: an earlier team of this process may have left a valid grant there (in tests, with
    // the same id).
    std::memset(channel.grant_cells, 0, kGrantTurns * sizeof(Grant));
  }
  SlotTable::Entry& grants = engine_.slots[channel.credit_slot + num_out];
  grants.team = this;
  grants.channel = c;
  grants.index = SlotTable::kGrant;
  writer.put(OutEntry{channel.key.lane, channel.key.path, rail, channel.credit_slot, entry.generation,
                      channel.credit_slot + num_out, grants.generation, granted ? 1U : 0U,
                      grant_cells_.offset + cells});
  return Status::success();
}

Status TeamImpl::offer_endpoint(Rank rank, Rail rail, Rail peer_rail, BlobWriter& writer) {
  transport::Transport* const transport = routes_.at(rank).transport(rail);
  auto connection = open_connection(rank, rail, peer_rail);
  if (!connection) return std::move(connection).error();
  transport::RemoteRegion region;
  if (config_.phantom) {
    region = phantom_regions_.at(transport).remote;
  } else {
    auto registered = engine_.arena.region(staging_, transport);
    if (!registered) return std::move(registered).error();
    region = registered->remote;
  }
  transport::RemoteRegion cells{};
  if (takes_grants(rank, rail)) {
    auto registered = engine_.grant_arena.region(grant_cells_, transport);
    if (!registered) return std::move(registered).error();
    cells = registered->remote;
  }
  writer.put(EndpointEntry{rail, peer_rail, (*connection)->incarnation, 0, region, cells});
  writer.put_bytes((*connection)->address);
  return Status::success();
}

// ---- Second exchange -----------------------------------------------------------------------------------

Status TeamImpl::connect(const Inbound& addresses) {
  const std::lock_guard driving(engine_);
  for (const auto& [peer, blob] : addresses.from_peers) {
    if (!routes_.contains(peer)) return disagreement({peer, -1});
    if (Status status = connect_peer(peer, blob); !status.ok()) return status;
  }
  for (const InChannel& channel : in_)
    if (channel.connection == nullptr) return disagreement(channel.key);
  for (const OutChannel& channel : out_)
    if (channel.connection == nullptr) return disagreement(channel.key);
  return Status::success();
}

Status TeamImpl::connect_peer(Rank rank, std::span<const std::byte> address) {
  struct In {
    InEntry entry;
    std::vector<std::uint8_t> generations;
  };
  std::vector<In> ins;
  std::vector<std::pair<EndpointEntry, transport::Address>> endpoints;
  BlobReader reader(address);
  const auto num_in = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < num_in && reader.ok(); ++i) {
    In in{reader.get<InEntry>(), {}};
    for (std::int32_t k = 0; k < config_.credits; ++k) in.generations.push_back(reader.get<std::uint8_t>());
    ins.push_back(std::move(in));
  }
  const auto outs = get_all<OutEntry>(reader);
  const auto num_endpoints = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < num_endpoints && reader.ok(); ++i) {
    const auto endpoint = reader.get<EndpointEntry>();
    const auto bytes = reader.get_bytes();
    endpoints.emplace_back(endpoint, transport::Address(bytes.begin(), bytes.end()));
  }
  if (!reader.ok()) return malformed(rank);
  // Connects our endpoint on `rail` with the peer's endpoint on `peer_rail`. Returns the peer's regions there.
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
  const auto is_of = [](const ChannelKey& key, const auto& entry) {
    return entry.lane == key.lane && entry.path == key.path;
  };

  for (const std::int32_t c : channels_.out_of(rank)) {
    OutChannel& channel = out_[static_cast<std::size_t>(c)];
    const auto in = std::ranges::find_if(ins, [&](const In& one) { return is_of(channel.key, one.entry); });
    if (in == ins.end()) return disagreement(channel.key);
    auto regions = join(channels_.out_rails[c], in->entry.rail, channel.connection);
    if (!regions) return std::move(regions).error();
    channel.remote = &(*regions)->staging;
    channel.remote_offset = in->entry.offset;
    channel.remote_slot_base = in->entry.slot_base;
    channel.remote_generation = in->generations;
    channel.num_slots = static_cast<std::uint32_t>(in->generations.size());
    channel.credits = channel.num_slots;
    channel.headers.resize(channel.num_slots * sizeof(WireHeader));
  }
  for (const std::int32_t c : channels_.in_of(rank)) {
    InChannel& channel = in_[static_cast<std::size_t>(c)];
    const auto out = std::ranges::find_if(outs, [&](const OutEntry& one) { return is_of(channel.key, one); });
    if (out == outs.end()) return disagreement(channel.key);
    const Rail rail = channels_.in_rails[c];
    auto regions = join(rail, out->rail, channel.connection);
    if (!regions) return std::move(regions).error();
    channel.credit_token = SlotToken{out->credit_slot, static_cast<std::uint8_t>(out->generation), 0}.pack();
    if (out->takes_grants == 0 || !takes_grants(rank, rail)) continue;
    transport::Transport* transport = channel.port->transport.get();
    channel.grant_cells = &(*regions)->grant_cells;
    channel.grant_offset = out->grant_offset;
    channel.grant_token =
        SlotToken{out->grant_slot, static_cast<std::uint8_t>(out->grant_generation), 0}.pack();
    channel.grant_sources = grant_sources_.data() + static_cast<std::size_t>(c) * kGrantTurns * sizeof(Grant);
    if (transport->query().needs_local_registration) {
      auto registered = engine_.grant_arena.region(grant_sources_, transport);
      if (!registered) return std::move(registered).error();
      channel.grant_memory = registered->local;
    }
  }
  return Status::success();
}

}  // namespace hips::exec
