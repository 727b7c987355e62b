#include "transports/inproc/fabric.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace hips::inproc {

using transport::Address;
using transport::Armed;
using transport::Event;
using transport::MemoryDesc;
using transport::MemoryId;
using transport::MemoryKind;
using transport::PeerId;
using transport::Region;
using transport::RemoteRegion;
using transport::Verb;
using transport::WorkRequest;

namespace {

/// The content of an Address.
struct InprocAddress {
  std::uint64_t magic = 0;
  std::uint64_t fabric = 0;
  PortIdx port = -1;
  PeerId peer = -1;
  std::uint32_t generation = 0;
  std::uint32_t padding = 0;
};
constexpr std::uint64_t kMagic = 0x636f72706e695f68;  // "h_inproc"

std::string describe(Rank rank, Rail rail) {
  return fmt::format("rank {} rail {}", rank, rail);
}

}  // namespace

Fabric::Fabric(const Network::Options& options) : options_(options) {}

Status Fabric::validate(const Network::Options& options, const Faults& faults) {
  const auto bad = [](std::string message) {
    return Status::error(Code::kInvalidArgument, std::move(message));
  };
  const std::pair<const char*, double> chances[] = {{"delay", faults.delay},
                                                    {"reorder", faults.reorder},
                                                    {"late_completion", faults.late_completion},
                                                    {"queue_full", faults.queue_full}};
  for (const auto& [name, value] : chances) {
    if (!(value >= 0 && value <= 1)) {
      return bad(fmt::format("inproc: fault \"{}\" has chance {}; it must lie in [0, 1]", name, value));
    }
    if (value > 0 && options.random == nullptr) {
      return bad(
          fmt::format("inproc: fault \"{}\" has chance {} but no random sequence was given", name, value));
    }
  }
  if (faults.max_delay_ns < 0) {
    return bad(fmt::format("inproc: max_delay_ns is {}; it must be 0 or more", faults.max_delay_ns));
  }
  if (faults.max_delay_ns > 0 && options.clock == nullptr) {
    return bad(fmt::format("inproc: max_delay_ns is {} but no clock was given", faults.max_delay_ns));
  }
  if (options.max_posted == 0) return bad("inproc: max_posted is 0; nothing could be posted");
  return Status::success();
}

Status Fabric::set_faults(const Faults& faults) {
  if (Status status = validate(options_, faults); !status.ok()) return status;
  options_.faults = faults;
  return Status::success();
}

// --- Ports and endpoints ---------------------------------------------------------------------------------

PortIdx Fabric::add_port(Rank rank, Rail rail) {
  auto port = std::make_unique<Port>();
  port->rank = rank;
  port->rail = rail;
  port->limits = {.name = "inproc",
                  .device = describe(rank, rail),
                  .latency_ns = options_.latency_ns,
                  .bandwidth_bytes_per_s = options_.bandwidth_bytes_per_s,
                  .max_message_bytes = std::size_t{1} << 40,
                  .max_posted = options_.max_posted,
                  .attaches_memory = options_.attaches_memory,
                  .completes_on_post = false,
                  .needs_local_registration = options_.needs_local_registration,
                  .registers_freely = options_.registers_freely,
                  .arrives_before_connect = true,
                  .asynchronous = false};
  ports_.push_back(std::move(port));
  return static_cast<PortIdx>(ports_.size() - 1);
}

void Fabric::remove_port(PortIdx idx) {
  Port& port = at(idx);
  if (!port.running) return;
  for (std::size_t peer = 0; peer < port.endpoints.size(); ++peer) close(idx, static_cast<PeerId>(peer));
  port.running = false;
  port.events.clear();
}

Fabric::Endpoint* Fabric::find_endpoint(Port& port, PeerId peer) {
  if (peer < 0 || static_cast<std::size_t>(peer) >= port.endpoints.size()) return nullptr;
  return &port.endpoints[static_cast<std::size_t>(peer)];
}

Result<Address> Fabric::open(PortIdx idx, PeerId peer) {
  Port& port = at(idx);
  if (peer < 0)
    return fail(Code::kInvalidArgument, fmt::format("inproc: open of peer {}; peers count from 0", peer));
  if (static_cast<std::size_t>(peer) >= port.endpoints.size()) {
    port.endpoints.resize(static_cast<std::size_t>(peer) + 1);
  }
  Endpoint& endpoint = port.endpoints[static_cast<std::size_t>(peer)];
  if (endpoint.state != Endpoint::State::kClosed) {
    return fail(Code::kInvalidArgument, fmt::format("inproc: peer {} is open already; close it first", peer));
  }
  const std::uint32_t generation = endpoint.generation + 1;
  endpoint = Endpoint{};
  endpoint.generation = generation;
  endpoint.state = Endpoint::State::kOpen;

  const InprocAddress wire{.magic = kMagic,
                           .fabric = reinterpret_cast<std::uintptr_t>(this),
                           .port = idx,
                           .peer = peer,
                           .generation = generation};
  Address address(sizeof wire);
  std::memcpy(address.data(), &wire, sizeof wire);
  return address;
}

Status Fabric::connect(PortIdx idx, PeerId peer, std::span<const std::byte> address) {
  Port& port = at(idx);
  Endpoint* endpoint = find_endpoint(port, peer);
  if (endpoint == nullptr || endpoint->state != Endpoint::State::kOpen) {
    return Status::error(
        Code::kInvalidArgument,
        fmt::format("inproc: connect of peer {}, which is not open or is connected already", peer));
  }
  InprocAddress wire;
  if (address.size() != sizeof wire) {
    return Status::error(Code::kInvalidArgument, fmt::format("inproc: an address of {} bytes; it has {}",
                                                             address.size(), sizeof wire));
  }
  std::memcpy(&wire, address.data(), sizeof wire);
  if (wire.magic != kMagic || wire.fabric != reinterpret_cast<std::uintptr_t>(this)) {
    return Status::error(Code::kInvalidArgument, "inproc: the address is of another transport or network");
  }
  endpoint->state = Endpoint::State::kConnected;
  endpoint->remote_port = wire.port;
  endpoint->remote_peer = wire.peer;
  endpoint->remote_generation = wire.generation;
  Port& remote = at(wire.port);
  const Endpoint* theirs = find_endpoint(remote, wire.peer);
  if (!remote.running || theirs == nullptr || theirs->generation != wire.generation ||
      theirs->state == Endpoint::State::kClosed) {
    endpoint->state = Endpoint::State::kBroken;
    return Status::error(
        Code::kPeerLost,
        fmt::format("inproc: {} has left before it was connected", describe(remote.rank, remote.rail)),
        Scope::kPeer);
  }
  return Status::success();
}

void Fabric::close(PortIdx idx, PeerId peer) {
  Port& port = at(idx);
  Endpoint* endpoint = find_endpoint(port, peer);
  if (endpoint == nullptr || endpoint->state == Endpoint::State::kClosed) return;
  const bool told = endpoint->state == Endpoint::State::kConnected && port.running;
  endpoint->state = Endpoint::State::kClosed;
  std::erase_if(port.events, [peer](const Event& event) { return event.peer == peer; });
  if (told) {
    tell_peer(*endpoint,
              Status::error(Code::kPeerLost,
                            fmt::format("inproc: {} has closed its endpoint", describe(port.rank, port.rail)),
                            Scope::kPeer));
  }
}

void Fabric::tell_peer(const Endpoint& endpoint, const Status& error) {
  // Data that has left our memory still arrives, so kPeerDead comes after it.
  Due due = Due::later(now(), Due::later(endpoint.last_arrival, endpoint.last_move));
  if (chance(options_.faults.delay)) due = delayed(due);
  schedule_.add(due, Action{.kind = Action::Kind::kPeerDead,
                            .piece = 0,
                            .transfer = nullptr,
                            .port = endpoint.remote_port,
                            .peer = endpoint.remote_peer,
                            .generation = endpoint.remote_generation,
                            .error = error});
  run_due();
}

void Fabric::tell_peers(PortIdx gone, const Status& error) {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    for (std::size_t peer = 0; peer < ports_[i]->endpoints.size(); ++peer) {
      const Endpoint& theirs = ports_[i]->endpoints[peer];
      if (theirs.state != Endpoint::State::kConnected || theirs.remote_port != gone) continue;
      Due due = now();
      if (chance(options_.faults.delay)) due = delayed(due);
      schedule_.add(due, Action{.kind = Action::Kind::kPeerDead,
                                .piece = 0,
                                .transfer = nullptr,
                                .port = static_cast<PortIdx>(i),
                                .peer = static_cast<PeerId>(peer),
                                .generation = theirs.generation,
                                .error = error});
    }
  }
  run_due();
}

void Fabric::kill(Rank rank) {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    Port& port = *ports_[i];
    if (port.rank != rank || !port.running) continue;
    port.running = false;
    ++port.life;
    port.events.clear();
    tell_peers(static_cast<PortIdx>(i),
               Status::error(Code::kPeerLost, fmt::format("inproc: rank {} was killed", rank), Scope::kPeer));
  }
}

void Fabric::take_down(Rank rank, Rail rail) {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    Port& port = *ports_[i];
    if (port.rank != rank || port.rail != rail || !port.running || port.down) continue;
    const Status error = Status::error(
        Code::kPeerLost, fmt::format("inproc: the port of {} went down", describe(rank, rail)), Scope::kLink);
    port.down = true;
    ++port.life;
    push_event(port,
               Event{.kind = Event::Kind::kPortDown, .peer = -1, .token = 0, .context = 0, .error = error});
    tell_peers(static_cast<PortIdx>(i), error);
  }
}

// --- Memory ----------------------------------------------------------------------------------------------

Result<Region> Fabric::register_memory(PortIdx idx, const MemoryDesc& memory) {
  if (memory.kind != MemoryKind::kPhantom && memory.address == nullptr && memory.bytes > 0) {
    return fail(
        Code::kInvalidArgument,
        fmt::format("inproc: {} bytes at a null address; give an address, or register them as phantom",
                    memory.bytes));
  }
  Port& port = at(idx);
  std::size_t slot = 0;
  while (slot < port.memories.size() && port.memories[slot].registered) ++slot;
  if (slot == port.memories.size()) port.memories.emplace_back();
  Memory& entry = port.memories[slot];
  entry = {.desc = memory, .registered = true, .generation = entry.generation + 1};
  return Region{.local = static_cast<MemoryId>(slot),
                .remote = {.key = {static_cast<std::uint64_t>(idx), slot, entry.generation, kMagic},
                           .bytes = memory.bytes}};
}

void Fabric::deregister(PortIdx idx, MemoryId memory) {
  Port& port = at(idx);
  if (memory < 0 || static_cast<std::size_t>(memory) >= port.memories.size()) return;
  port.memories[static_cast<std::size_t>(memory)].registered = false;
}

Result<std::span<std::byte>> Fabric::attach(PortIdx idx, PeerId peer, const RemoteRegion& region) {
  if (!options_.attaches_memory) {
    return fail(Code::kUnsupported, "inproc: this network was made with attaches_memory = false");
  }
  const Endpoint* endpoint = find_endpoint(at(idx), peer);
  if (endpoint == nullptr || endpoint->state != Endpoint::State::kConnected) {
    return fail(Code::kInvalidArgument,
                fmt::format("inproc: attach to peer {}, which is not connected", peer));
  }
  const Port& remote = at(endpoint->remote_port);
  if (region.key[3] != kMagic || region.key[0] != static_cast<std::uint64_t>(endpoint->remote_port) ||
      region.key[1] >= remote.memories.size() || !remote.memories[region.key[1]].registered ||
      remote.memories[region.key[1]].generation != region.key[2]) {
    return fail(Code::kInvalidArgument, fmt::format("inproc: peer {} has no such region registered", peer));
  }
  const MemoryDesc& memory = remote.memories[region.key[1]].desc;
  if (memory.kind == MemoryKind::kPhantom) {
    return fail(Code::kUnsupported, "inproc: phantom memory has no bytes to attach");
  }
  return std::span<std::byte>(memory.address, memory.bytes);
}

// --- Requests --------------------------------------------------------------------------------------------

bool Fabric::chance(double probability) {
  if (probability <= 0) return false;
  // 53 random bits as a fraction: std::uniform_real_distribution differs between standard libraries.
  return static_cast<double>((*options_.random)() >> 11) * 0x1p-53 < probability;
}

Due Fabric::now() const {
  return {step_, options_.clock == nullptr ? 0 : options_.clock->now_ns()};
}

Due Fabric::delayed(Due due) {
  const Faults& faults = options_.faults;
  if (faults.max_delay_steps > 0) due.step += 1 + (*options_.random)() % faults.max_delay_steps;
  if (faults.max_delay_ns > 0) {
    due.ns += static_cast<std::int64_t>((*options_.random)() %
                                        (static_cast<std::uint64_t>(faults.max_delay_ns) + 1));
  }
  return due;
}

std::size_t Fabric::post(PortIdx idx, std::span<const WorkRequest> requests) {
  Port& port = at(idx);
  if (!port.running || port.down) return requests.size();
  std::size_t taken = 0;
  for (const WorkRequest& request : requests) {
    if (port.num_posted >= options_.max_posted || chance(options_.faults.queue_full)) break;
    post_one(idx, request);
    ++taken;
  }
  run_due();
  return taken;
}

bool Fabric::sends_registered(const Port& port, const WorkRequest& request) {
  const auto registered = [&](const std::byte* address, std::size_t bytes, MemoryId memory) {
    if (bytes == 0 || address == nullptr) return true;
    if (memory < 0 || static_cast<std::size_t>(memory) >= port.memories.size()) return false;
    const Memory& entry = port.memories[static_cast<std::size_t>(memory)];
    return entry.registered && address >= entry.desc.address && bytes <= entry.desc.bytes &&
           static_cast<std::size_t>(address - entry.desc.address) <= entry.desc.bytes - bytes;
  };
  if (request.verb == Verb::kGet)
    return registered(request.into.data(), request.into.size(), request.pieces[0].memory);
  for (std::int32_t i = 0; i < request.num_pieces; ++i) {
    const auto& piece = request.pieces[static_cast<std::size_t>(i)];
    if (!registered(piece.address, piece.bytes, piece.memory)) return false;
  }
  return true;
}

void Fabric::post_one(PortIdx from, const WorkRequest& request) {
  Port& port = at(from);
  Endpoint* endpoint = find_endpoint(port, request.peer);
  if (endpoint == nullptr || endpoint->state == Endpoint::State::kClosed ||
      endpoint->state == Endpoint::State::kOpen) {
    break_endpoint(from, request.peer,
                   Status::error(Code::kInvalidArgument,
                                 fmt::format("inproc: post to peer {}, which is not connected", request.peer),
                                 Scope::kPeer));
    return;
  }
  if (endpoint->state == Endpoint::State::kBroken) return;

  if (options_.needs_local_registration && !sends_registered(port, request)) {
    break_endpoint(
        from, request.peer,
        Status::error(Code::kInternal,
                      fmt::format("inproc: {}: a request sends memory that is not registered with it",
                                  describe(port.rank, port.rail)),
                      Scope::kPeer));
    return;
  }

  auto transfer = std::make_shared<Transfer>();
  transfer->number = next_transfer_++;
  transfer->from = from;
  transfer->to = endpoint->remote_port;
  transfer->from_life = port.life;
  transfer->to_life = at(endpoint->remote_port).life;
  transfer->generation = endpoint->generation;
  transfer->remote_generation = endpoint->remote_generation;
  transfer->remote_peer = endpoint->remote_peer;
  transfer->request = request;
  transfer->has_remote = request.remote != nullptr;
  if (transfer->has_remote) transfer->remote = *request.remote;
  transfer->request.remote = nullptr;
  ++port.num_posted;

  const Faults& faults = options_.faults;
  const Due start = chance(faults.delay) ? delayed(now()) : now();
  const bool late = chance(faults.late_completion);
  Due moved = start;
  const std::int32_t num_moves = request.verb == Verb::kGet ? 1 : request.num_pieces;
  for (std::int32_t piece = 0; piece < num_moves; ++piece) {
    const Due due = late ? delayed(start) : start;
    moved = Due::later(moved, due);
    schedule_.add(due, Action{.kind = Action::Kind::kMove,
                              .piece = piece,
                              .transfer = transfer,
                              .port = -1,
                              .peer = -1,
                              .generation = 0,
                              .error = {}});
  }
  endpoint->last_move = Due::later(endpoint->last_move, moved);
  if (request.verb == Verb::kPut) endpoint->last_put = Due::later(endpoint->last_put, moved);

  if (request.verb == Verb::kPutNotify) {
    Due due = Due::later(moved, endpoint->last_put);
    if (chance(faults.reorder)) {
      due = delayed(due);
    } else {
      due = Due::later(due, endpoint->last_ordered);
      endpoint->last_ordered = due;
    }
    endpoint->last_arrival = Due::later(endpoint->last_arrival, due);
    schedule_.add(due, Action{.kind = Action::Kind::kArrive,
                              .piece = 0,
                              .transfer = transfer,
                              .port = -1,
                              .peer = -1,
                              .generation = 0,
                              .error = {}});
  }
  // A completion also covers the unsignalled requests before it, as on a queue pair.
  const Due finished = late ? delayed(endpoint->last_move) : endpoint->last_move;
  schedule_.add(finished, Action{.kind = Action::Kind::kFinish,
                                 .piece = 0,
                                 .transfer = std::move(transfer),
                                 .port = -1,
                                 .peer = -1,
                                 .generation = 0,
                                 .error = {}});
}

void Fabric::step() {
  ++step_;
  run_due();
}

void Fabric::run_due() {
  while (auto action = schedule_.take(now())) {
    switch (action->kind) {
      case Action::Kind::kMove:
        move(*action);
        break;
      case Action::Kind::kArrive:
        arrive(*action);
        break;
      case Action::Kind::kFinish:
        finish(*action);
        break;
      case Action::Kind::kPeerDead: {
        const Endpoint* told = find_endpoint(at(action->port), action->peer);
        if (told == nullptr || told->generation != action->generation ||
            told->state == Endpoint::State::kClosed)
          break;
        break_endpoint(action->port, action->peer, action->error);
        break;
      }
    }
  }
}

bool Fabric::endpoint_alive(const Transfer& transfer, bool source) const {
  const Port& port = at(source ? transfer.from : transfer.to);
  const PeerId peer = source ? transfer.request.peer : transfer.remote_peer;
  const Endpoint& end = port.endpoints[static_cast<std::size_t>(peer)];
  return port.running && port.life == (source ? transfer.from_life : transfer.to_life) &&
         end.state != Endpoint::State::kClosed &&
         end.generation == (source ? transfer.generation : transfer.remote_generation);
}

bool Fabric::is_gone(PortIdx idx, const RemoteRegion& region) const {
  const Port& port = at(idx);
  if (region.key[3] != kMagic || region.key[0] != static_cast<std::uint64_t>(idx) ||
      region.key[1] >= port.memories.size())
    return false;
  const Memory& memory = port.memories[region.key[1]];
  return region.key[2] < memory.generation || (region.key[2] == memory.generation && !memory.registered);
}

void Fabric::move(const Action& action) {
  Transfer& transfer = *action.transfer;
  const WorkRequest& request = transfer.request;
  if (transfer.failed) return;
  // If either end is gone, nothing is read or written, because the memory may be freed.
  if (!endpoint_alive(transfer, true) || !endpoint_alive(transfer, false)) {
    transfer.failed = true;
    return;
  }
  const bool get = request.verb == Verb::kGet;
  std::uint64_t offset = request.remote_offset;
  for (std::int32_t i = 0; i < action.piece; ++i) offset += request.pieces[static_cast<std::size_t>(i)].bytes;
  const auto& piece = request.pieces[static_cast<std::size_t>(action.piece)];
  const std::size_t bytes = get ? request.into.size() : piece.bytes;
  record(Action::Kind::kMove, transfer.from, transfer.to, (offset << 20) ^ bytes);
  if (bytes == 0) return;

  const RemoteRegion& remote = transfer.remote;
  const Port& port = at(transfer.to);
  if (options_.registers_freely && !get && transfer.has_remote && is_gone(transfer.to, remote)) return;
  if (!transfer.has_remote || remote.key[3] != kMagic ||
      remote.key[0] != static_cast<std::uint64_t>(transfer.to) || remote.key[1] >= port.memories.size() ||
      !port.memories[remote.key[1]].registered || port.memories[remote.key[1]].generation != remote.key[2]) {
    fail_transfer(transfer, fmt::format("inproc: {} bytes for a region that {} has not registered", bytes,
                                        describe(port.rank, port.rail)));
    return;
  }
  const MemoryDesc& memory = port.memories[remote.key[1]].desc;
  if (offset > memory.bytes || bytes > memory.bytes - offset) {
    fail_transfer(transfer, fmt::format("inproc: {} bytes at offset {} of a region of {} bytes", bytes,
                                        offset, memory.bytes));
    return;
  }
  if (memory.kind == MemoryKind::kPhantom) return;
  if (get) {
    if (request.into.data() != nullptr) std::memcpy(request.into.data(), memory.address + offset, bytes);
  } else if (piece.address != nullptr) {
    std::memmove(memory.address + offset, piece.address, bytes);
  }
}

void Fabric::arrive(const Action& action) {
  Transfer& transfer = *action.transfer;
  // Requests of a closed endpoint still arrive; outstanding ones of a killed rank or a lost port do not.
  const Port& from = at(transfer.from);
  if (transfer.failed || from.life != transfer.from_life || !endpoint_alive(transfer, false)) return;
  Port& port = at(transfer.to);
  record(Action::Kind::kArrive, transfer.from, transfer.to, transfer.request.token);
  push_event(port, Event{.kind = Event::Kind::kArrival,
                         .peer = transfer.remote_peer,
                         .token = transfer.request.token,
                         .context = 0,
                         .error = {}});
}

void Fabric::finish(const Action& action) {
  Transfer& transfer = *action.transfer;
  Port& port = at(transfer.from);
  --port.num_posted;
  if (transfer.failed || !endpoint_alive(transfer, true)) return;
  // The context is left out: callers put addresses there, which differ between runs.
  record(Action::Kind::kFinish, transfer.from, transfer.to, transfer.number);
  if (!transfer.request.signalled) return;
  push_event(port, Event{.kind = Event::Kind::kCompletion,
                         .peer = transfer.request.peer,
                         .token = transfer.request.token,
                         .context = transfer.request.context,
                         .error = {}});
}

void Fabric::fail_transfer(Transfer& transfer, std::string message) {
  transfer.failed = true;
  break_endpoint(transfer.from, transfer.request.peer,
                 Status::error(Code::kInternal, std::move(message), Scope::kPeer));
}

void Fabric::break_endpoint(PortIdx idx, PeerId peer, Status error) {
  Port& port = at(idx);
  if (!port.running) return;
  Endpoint* endpoint = find_endpoint(port, peer);
  if (endpoint != nullptr) {
    if (endpoint->state == Endpoint::State::kBroken) return;
    if (endpoint->state != Endpoint::State::kClosed) endpoint->state = Endpoint::State::kBroken;
  }
  record(Action::Kind::kPeerDead, idx, idx, static_cast<std::uint64_t>(peer));
  push_event(
      port,
      Event{
          .kind = Event::Kind::kPeerDead, .peer = peer, .token = 0, .context = 0, .error = std::move(error)});
}

// --- Events ----------------------------------------------------------------------------------------------

void Fabric::push_event(Port& port, Event event) {
  port.events.push_back(std::move(event));
  if (port.armed) (void)eventfd_write(port.wake_fd.get(), 1);  // fails only if it is readable already
}

std::size_t Fabric::poll(PortIdx idx, std::span<Event> events) {
  if (options_.step_on_poll) step();
  Port& port = at(idx);
  std::size_t filled = 0;
  while (filled < events.size() && !port.events.empty()) {
    events[filled++] = std::move(port.events.front());
    port.events.pop_front();
  }
  return filled;
}

Armed Fabric::arm(PortIdx idx) {
  Port& port = at(idx);
  if (!port.wake_fd.valid()) {
    port.wake_fd.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!port.wake_fd.valid()) return {.ready = true, .fd = -1};  // no descriptor left: the caller must poll
  }
  port.armed = true;
  // Outstanding requests make progress only when some rank polls, and all ranks share this thread.
  return {.ready = !port.events.empty() || schedule_.size() > 0, .fd = port.wake_fd.get()};
}

void Fabric::disarm(PortIdx idx) {
  Port& port = at(idx);
  port.armed = false;
  eventfd_t count = 0;
  if (port.wake_fd.valid()) (void)eventfd_read(port.wake_fd.get(), &count);  // fails only if it is empty
}

void Fabric::record(Action::Kind kind, PortIdx from, PortIdx to, std::uint64_t detail) {
  const std::uint64_t words[] = {step_, static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(from),
                                 static_cast<std::uint64_t>(to), detail};
  for (const std::uint64_t word : words) {
    for (int shift = 0; shift < 64; shift += 8) hash_ = (hash_ ^ ((word >> shift) & 0xff)) * 0x100000001b3;
  }
}

}  // namespace hips::inproc
