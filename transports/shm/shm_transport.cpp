#include "transports/shm/shm_transport.hpp"

#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace hips::shm {

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

/// Idle polls, about 10 us, between two checks of the peers' processes. A check is a system call.
constexpr std::uint32_t kIdlePollsPerLook = 1024;
constexpr std::size_t kMinCompletions = 1024;
/// Rejects invalid keys: no process registers so many regions.
constexpr std::uint32_t kMaxRegions = 1u << 20;

void clear_error(Event& event) {
  if (!event.error.ok()) event.error = Status::success();
}

/// Tells a receiver that ring `slot` has entries, and ends its sleep.
void ring_bell(Doorbell& bell, std::uint32_t slot, const UniqueFd& pipe) {
  bell.ring(slot);
  if (const std::uint64_t sleep = bell.asleep(); sleep != 0) [[unlikely]] {
    WakePipe::ring(pipe);
    bell.woken(sleep);
  }
}

}  // namespace

// --- Making and ending -----------------------------------------------------------------------------------

Result<std::unique_ptr<transport::Transport>> create(const ShmOptions& options) {
  return ShmTransport::create(options);
}

Result<std::unique_ptr<transport::Transport>> ShmTransport::create(const ShmOptions& options) {
  if (options.max_peers < 1 || options.max_peers > static_cast<std::int32_t>(Doorbell::kMaxRings)) {
    return fail(Code::kInvalidArgument, fmt::format("shm: max_peers is {}; it must lie in [1, {}]",
                                                    options.max_peers, Doorbell::kMaxRings));
  }
  if (options.ring_entries < 4 || options.ring_entries > (1u << 20) ||
      !std::has_single_bit(options.ring_entries)) {
    return fail(Code::kInvalidArgument,
                fmt::format("shm: ring_entries is {}; it must be a power of two in [4, {}]",
                            options.ring_entries, 1u << 20));
  }
  auto control =
      SharedMemory::create(ring_offset(static_cast<std::uint32_t>(options.max_peers), options.ring_entries));
  if (!control) return fail(std::move(control).error());
  auto watch = Watch::create();
  if (!watch) return fail(std::move(watch).error());
  return std::unique_ptr<transport::Transport>(
      new ShmTransport(options, *std::move(control), *std::move(watch)));
}

ShmTransport::ShmTransport(const ShmOptions& options, SharedMemory control, Watch watch)
    : options_(options),
      limits_{.name = "shm",
              .device = "memory",
              .latency_ns = options.latency_ns,
              .bandwidth_bytes_per_s = options.bandwidth_bytes_per_s,
              .max_message_bytes = std::size_t{1} << 40,
              .max_posted = options.ring_entries,
              .attaches_memory = true,
              .completes_on_post = true,
              .needs_local_registration = false,
              .arrives_before_connect = true,
              .asynchronous = false},
      pid_(getpid()),
      machine_(Machine::current()),
      control_(std::move(control)),
      watch_(std::move(watch)),
      by_slot_(static_cast<std::size_t>(options.max_peers)),
      completions_(std::max<std::size_t>(kMinCompletions, options.ring_entries)) {
  new (control_.data()) ControlHeader{.ring_entries = options.ring_entries,
                                      .num_rings = static_cast<std::uint32_t>(options.max_peers)};
  bell_ = new (control_.data() + kBellOffset) Doorbell;
  // Slot 0 is taken first: the first rings share the doorbell's cache line.
  for (auto slot = static_cast<std::uint32_t>(options.max_peers); slot-- > 0;) free_slots_.push_back(slot);
}

ShmTransport::~ShmTransport() {
  for (std::size_t peer = 0; peer < endpoints_.size(); ++peer) close(static_cast<PeerId>(peer));
}

NotifyRing* ShmTransport::ring(std::uint32_t slot) const {
  return reinterpret_cast<NotifyRing*>(control_.data() + ring_offset(slot, options_.ring_entries));
}

// --- Endpoints -------------------------------------------------------------------------------------------

Result<std::uint32_t> ShmTransport::take_slot() {
  for (auto it = abandoned_.begin(); free_slots_.empty() && it != abandoned_.end();) {
    pollfd ended{.fd = it->pidfd.get(), .events = POLLIN, .revents = 0};
    const bool gone = ring(it->slot)->owner.load(std::memory_order_acquire) == 0 ||
                      (it->pidfd.valid() && ::poll(&ended, 1, 0) == 1);
    if (gone) free_slots_.push_back(it->slot);
    it = gone ? abandoned_.erase(it) : it + 1;
  }
  if (free_slots_.empty()) {
    return fail(Code::kInvalidArgument,
                fmt::format("shm: {} peers are open, or closed here while they are not at the peer; raise "
                            "ShmOptions::max_peers",
                            options_.max_peers));
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

Result<Address> ShmTransport::open(PeerId peer) {
  if (pid_ != getpid())
    return fail(Code::kUnsupported, "shm: this process is a fork of the one that made the transport");
  if (peer < 0)
    return fail(Code::kInvalidArgument, fmt::format("shm: open of peer {}; peers count from 0", peer));
  if (find_endpoint(peer) != nullptr) {
    return fail(Code::kInvalidArgument, fmt::format("shm: peer {} is open already; close it first", peer));
  }
  std::uint64_t token = 0;
  if (getrandom(&token, sizeof token, 0) != static_cast<ssize_t>(sizeof token)) {
    Status status = Status::error(Code::kSystem, fmt::format("shm: getrandom: {}", std::strerror(errno)));
    status.sys_errno = errno;
    return fail(std::move(status));
  }
  token = std::max<std::uint64_t>(token & ~std::uint64_t{1}, 2);
  auto slot = take_slot();
  if (!slot) return fail(std::move(slot).error());

  bell_->clear(*slot);
  NotifyRing* inbox = new (ring(*slot)) NotifyRing;
  for (std::uint32_t i = 0; i < options_.ring_entries; ++i)
    inbox->entries()[i].store(0, std::memory_order_relaxed);
  inbox->owner.store(token, std::memory_order_release);

  auto made = std::make_unique<Endpoint>();
  made->peer = peer;
  made->slot = *slot;
  made->ring_token = token;
  made->inbox = RingReceiver(inbox, options_.ring_entries);
  by_slot_[*slot] = made.get();
  if (static_cast<std::size_t>(peer) >= endpoints_.size())
    endpoints_.resize(static_cast<std::size_t>(peer) + 1);
  endpoints_[static_cast<std::size_t>(peer)] = std::move(made);

  ShmAddress wire;
  machine_.boot_id.copy(wire.boot_id.data(), wire.boot_id.size() - 1);
  wire.pid_namespace = machine_.pid_namespace;
  wire.control = control_.name();
  wire.pipe = watch_.pipe_name();
  wire.ring_token = token;
  wire.slot = *slot;
  Address address(sizeof wire);
  std::memcpy(address.data(), &wire, sizeof wire);
  return address;
}

Status ShmTransport::read_address(std::span<const std::byte> bytes, ShmAddress& wire) const {
  if (bytes.size() != sizeof wire) {
    return Status::error(Code::kInvalidArgument,
                         fmt::format("shm: an address of {} bytes; it has {}", bytes.size(), sizeof wire));
  }
  std::memcpy(&wire, bytes.data(), sizeof wire);
  wire.boot_id.back() = 0;
  if (wire.magic != ShmAddress::kMagic) {
    return Status::error(Code::kInvalidArgument, "shm: the address is of another transport or version");
  }
  if (machine_.boot_id != wire.boot_id.data()) {
    return Status::error(Code::kUnsupported,
                         fmt::format("shm: process {} runs on another machine (boot id {} there, {} here)",
                                     wire.control.file.pid, wire.boot_id.data(), machine_.boot_id),
                         Scope::kPeer);
  }
  if (machine_.pid_namespace != wire.pid_namespace) {
    return Status::error(
        Code::kUnsupported,
        fmt::format("shm: process {} runs in another pid namespace ({} there, {} here); start all "
                    "ranks of a machine in one container, or share the host's pid namespace",
                    wire.control.file.pid, wire.pid_namespace, machine_.pid_namespace),
        Scope::kPeer);
  }
  return Status::success();
}

Status ShmTransport::connect(PeerId peer, std::span<const std::byte> address) {
  Endpoint* endpoint = find_endpoint(peer);
  if (endpoint != nullptr && endpoint->state == Endpoint::State::kBroken) {
    return Status::error(Code::kPeerLost, fmt::format("shm: peer {} has left before it was connected", peer),
                         Scope::kPeer);
  }
  if (endpoint == nullptr || endpoint->state != Endpoint::State::kOpen || pid_ != getpid()) {
    return Status::error(
        Code::kInvalidArgument,
        fmt::format("shm: connect of peer {}, which is not open or is connected already", peer));
  }
  ShmAddress wire;
  if (Status status = read_address(address, wire); !status.ok()) return status;
  return join(*endpoint, wire);
}

Status ShmTransport::join(Endpoint& endpoint, const ShmAddress& wire) {
  const std::int32_t pid = wire.control.file.pid;
  // Open the pidfd first. If the process number was reused, the segment's token does not match below;
  // otherwise the descriptor is the owner's.
  UniqueFd pidfd;
  if (pid != pid_) {
    auto opened = open_pidfd(pid);
    if (!opened) return std::move(opened).error();
    pidfd = *std::move(opened);
  }
  auto control = SharedMemory::attach(wire.control);
  if (!control) return std::move(control).error();
  ControlHeader header;
  if (control->size() >= kRingsOffset) std::memcpy(&header, control->data(), sizeof header);
  if (control->size() < kRingsOffset || header.magic != ControlHeader::kMagic ||
      wire.slot >= header.num_rings || !std::has_single_bit(header.ring_entries) ||
      control->size() < ring_offset(header.num_rings, header.ring_entries)) {
    return Status::error(Code::kInvalidArgument,
                         fmt::format("shm: the segment of process {} is of another version", pid),
                         Scope::kPeer);
  }
  auto pipe = WakePipe::open_end(wire.pipe);
  if (!pipe) return std::move(pipe).error();

  auto* ring_of_mine =
      reinterpret_cast<NotifyRing*>(control->data() + ring_offset(wire.slot, header.ring_entries));
  std::uint64_t token = wire.ring_token;
  if (!ring_of_mine->owner.compare_exchange_strong(token, token | 1, std::memory_order_acq_rel)) {
    return Status::error(
        Code::kPeerLost,
        fmt::format("shm: process {} has closed the endpoint that this address names, or the "
                    "address was used before",
                    pid),
        Scope::kPeer);
  }
  if (pidfd.valid()) {
    if (Status status = watch_.add(endpoint.peer, pidfd.get()); !status.ok()) {
      ring_of_mine->owner.store(0, std::memory_order_seq_cst);
      return status;
    }
    endpoint.watched = true;
  }
  endpoint.pid = pid;
  endpoint.pidfd = std::move(pidfd);
  endpoint.control = *std::move(control);
  endpoint.bell = reinterpret_cast<Doorbell*>(endpoint.control.data() + kBellOffset);
  endpoint.their_ring = ring_of_mine;
  endpoint.their_slot = wire.slot;
  endpoint.outbox = RingSender(ring_of_mine, header.ring_entries);
  endpoint.pipe = *std::move(pipe);
  endpoint.state = Endpoint::State::kConnected;
  // The peer may have filled our ring already and wait for room, which we could not report to it before.
  ring_bell(*endpoint.bell, endpoint.their_slot, endpoint.pipe);
  return Status::success();
}

void ShmTransport::release_slot(Endpoint& endpoint) {
  NotifyRing* inbox = ring(endpoint.slot);
  std::uint64_t token = endpoint.ring_token;
  by_slot_[endpoint.slot] = nullptr;
  inbox->closed.store(1, std::memory_order_seq_cst);
  // A ring that was never taken, or whose sender has left, is free. Otherwise its sender may still write.
  if (inbox->owner.compare_exchange_strong(token, 0, std::memory_order_acq_rel) || token == 0) {
    free_slots_.push_back(endpoint.slot);
  } else {
    abandoned_.push_back({.slot = endpoint.slot, .pidfd = std::move(endpoint.pidfd)});
  }
}

void ShmTransport::close(PeerId peer) {
  Endpoint* endpoint = find_endpoint(peer);
  if (endpoint == nullptr) return;
  if (pid_ == getpid()) {
    if (endpoint->watched) watch_.forget(endpoint->pidfd.get());
    if (endpoint->their_ring != nullptr) {
      endpoint->their_ring->owner.store(0, std::memory_order_seq_cst);
      ring_bell(*endpoint->bell, endpoint->their_slot, endpoint->pipe);
    }
    release_slot(*endpoint);
  }
  std::erase_if(broken_, [peer](const Broken& broken) { return broken.peer == peer; });
  drop_completions(peer);
  endpoints_[static_cast<std::size_t>(peer)].reset();
}

void ShmTransport::break_endpoint(Endpoint& endpoint, Status error, bool after_arrivals) {
  if (endpoint.state == Endpoint::State::kBroken) return;
  // First what needs memory: without it the next look finds the end again.
  broken_.push_back({.peer = endpoint.peer, .error = std::move(error), .after_arrivals = after_arrivals});
  endpoint.state = Endpoint::State::kBroken;
  if (std::exchange(endpoint.watched, false)) watch_.forget(endpoint.pidfd.get());
}

void ShmTransport::look_at_processes() {
  ended_.clear();
  watch_.look(ended_);
  for (const PeerId peer : ended_) {
    Endpoint* endpoint = find_endpoint(peer);
    if (endpoint == nullptr) continue;
    set_pending(endpoint->slot);  // the peer may have ended between an entry and the doorbell
    break_endpoint(
        *endpoint,
        Status::error(Code::kPeerLost, fmt::format("shm: process {} has ended", endpoint->pid), Scope::kPeer),
        true);
  }
}

// --- Memory ----------------------------------------------------------------------------------------------

Result<Region> ShmTransport::register_memory(const MemoryDesc& memory) {
  if (memory.kind != MemoryKind::kShared) {
    return fail(
        Code::kUnsupported,
        fmt::format("shm: peers cannot map {} memory; allocate it as SharedMemory and register it as kShared",
                    memory.kind == MemoryKind::kPhantom ? "phantom" : "ordinary"));
  }
  auto name = SharedMemory::name_of(memory.fd);
  if (!name) return fail(std::move(name).error());
  if (memory.address == nullptr || memory.bytes == 0 || memory.bytes > name->bytes) {
    return fail(
        Code::kInvalidArgument,
        fmt::format("shm: {} bytes to register of a segment of {}; register it from its start, at most whole",
                    memory.bytes, name->bytes));
  }
  const auto free = std::find(regions_.begin(), regions_.end(), false);
  const auto index = static_cast<std::uint32_t>(free - regions_.begin());
  if (free == regions_.end()) {
    regions_.push_back(true);
  } else {
    *free = true;
  }
  return Region{.local = static_cast<MemoryId>(index),
                .remote = {.key = {static_cast<std::uint64_t>(memory.fd) << 32 | index, name->token,
                                   name->file.inode, name->file.device},
                           .bytes = memory.bytes}};
}

void ShmTransport::deregister(MemoryId memory) {
  if (memory < 0 || static_cast<std::size_t>(memory) >= regions_.size()) return;
  regions_[static_cast<std::size_t>(memory)] = false;
}

Result<ShmTransport::MappedRegion*> ShmTransport::map(Endpoint& endpoint, const RemoteRegion& region) {
  const auto index = static_cast<std::uint32_t>(region.key[0]);
  if (index >= kMaxRegions) {
    return fail(Code::kInvalidArgument, fmt::format("shm: no region of this transport (number {})", index));
  }
  if (endpoint.has(region)) {
    return &endpoint.regions[index];
  }
  auto memory = SharedMemory::attach({.file = {.pid = endpoint.pid,
                                               .fd = static_cast<std::int32_t>(region.key[0] >> 32),
                                               .device = region.key[3],
                                               .inode = region.key[2]},
                                      .token = region.key[1],
                                      .bytes = region.bytes});
  if (!memory) return fail(std::move(memory).error());
  if (index >= endpoint.regions.size()) endpoint.regions.resize(index + 1);
  // The peer reuses a number only after deregister(), so this also drops the mapping of a deregistered
  // region.
  endpoint.regions[index] = {.token = region.key[1], .memory = *std::move(memory)};
  return &endpoint.regions[index];
}

Result<std::span<std::byte>> ShmTransport::attach(PeerId peer, const RemoteRegion& region) {
  Endpoint* endpoint = find_endpoint(peer);
  if (endpoint == nullptr || endpoint->state != Endpoint::State::kConnected) {
    return fail(Code::kInvalidArgument, fmt::format("shm: attach to peer {}, which is not connected", peer));
  }
  auto mapped = map(*endpoint, region);
  if (!mapped) return fail(std::move(mapped).error());
  return (*mapped)->memory.bytes().first(region.bytes);
}

// --- Posting ---------------------------------------------------------------------------------------------

std::byte* ShmTransport::resolve(Endpoint& endpoint, const WorkRequest& request, std::size_t bytes) {
  if (request.remote == nullptr) {
    break_endpoint(
        endpoint,
        Status::error(Code::kInternal, fmt::format("shm: {} bytes for no region", bytes), Scope::kPeer),
        false);
    return nullptr;
  }
  const RemoteRegion& remote = *request.remote;
  MappedRegion* region = nullptr;
  if (endpoint.has(remote)) [[likely]] {
    region = &endpoint.regions[static_cast<std::uint32_t>(remote.key[0])];
  } else {
    auto mapped = map(endpoint, remote);
    if (!mapped) {
      break_endpoint(endpoint, std::move(mapped).error(), false);
      return nullptr;
    }
    region = *mapped;
  }
  if (request.remote_offset > remote.bytes || bytes > remote.bytes - request.remote_offset) [[unlikely]] {
    break_endpoint(endpoint,
                   Status::error(Code::kInternal,
                                 fmt::format("shm: {} bytes at offset {} of a region of {} bytes", bytes,
                                             request.remote_offset, remote.bytes),
                                 Scope::kPeer),
                   false);
    return nullptr;
  }
  return region->memory.data() + request.remote_offset;
}

bool ShmTransport::move(Endpoint& endpoint, const WorkRequest& request) {
  if (request.verb == Verb::kGet) {
    if (request.into.empty()) return true;
    const std::byte* from = resolve(endpoint, request, request.into.size());
    if (from == nullptr) return false;
    if (request.into.data() != nullptr) std::memcpy(request.into.data(), from, request.into.size());
    return true;
  }
  const std::span pieces(request.pieces.data(), static_cast<std::size_t>(request.num_pieces));
  std::size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.bytes;
  if (bytes == 0) return true;
  std::byte* to = resolve(endpoint, request, bytes);
  if (to == nullptr) return false;
  for (const auto& piece : pieces) {
    if (piece.address != nullptr && piece.bytes > 0) std::memcpy(to, piece.address, piece.bytes);
    to += piece.bytes;
  }
  return true;
}

void ShmTransport::refuse(PeerId peer) {
  Status error =
      Status::error(Code::kInvalidArgument, fmt::format("shm: post to peer {}, which is not connected", peer),
                    Scope::kPeer);
  if (Endpoint* endpoint = find_endpoint(peer); endpoint != nullptr) {
    break_endpoint(*endpoint, std::move(error), false);
  } else if (std::none_of(broken_.begin(), broken_.end(),
                          [peer](const Broken& b) { return b.peer == peer; })) {
    broken_.push_back({.peer = peer, .error = std::move(error), .after_arrivals = false});
  }
}

void ShmTransport::queue_completion(const WorkRequest& request) {
  const std::size_t at = (completions_head_ + num_completions_) % completions_.size();
  completions_[at] = {.peer = request.peer, .token = request.token, .context = request.context};
  ++num_completions_;
}

void ShmTransport::drop_completions(PeerId peer) {
  const std::size_t count = std::exchange(num_completions_, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const Completion done = completions_[(completions_head_ + i) % completions_.size()];
    if (done.peer == peer) continue;
    completions_[(completions_head_ + num_completions_) % completions_.size()] = done;
    ++num_completions_;
  }
}

std::size_t ShmTransport::post(std::span<const WorkRequest> requests) {
  std::size_t taken = 0;
  try {
    post(requests, taken);
  } catch (const std::bad_alloc&) {
    // Those that were taken must not be posted again.
    if (taken == 0) throw;
  }
  return taken;
}

void ShmTransport::post(std::span<const WorkRequest> requests, std::size_t& taken) {
  for (const WorkRequest& request : requests) {
    Endpoint* peer = find_endpoint(request.peer);
    if (peer == nullptr || peer->state != Endpoint::State::kConnected) [[unlikely]] {
      if (peer == nullptr || peer->state == Endpoint::State::kOpen) refuse(request.peer);
      ++taken;  // a broken endpoint accepts and discards requests
      continue;
    }
    if (request.signalled && num_completions_ == completions_.size()) break;
    const bool notify = request.verb == Verb::kPutNotify;
    if (notify && !peer->outbox.has_space()) [[unlikely]] {
      if (!peer->outbox.closed()) break;
      set_pending(peer->slot);
      break_endpoint(
          *peer,
          Status::error(Code::kPeerLost, fmt::format("shm: process {} has closed its endpoint", peer->pid),
                        Scope::kPeer),
          true);
      ++taken;
      continue;
    }
    const bool moved = move(*peer, request);
    ++taken;
    if (!moved) [[unlikely]]
      continue;
    if (notify) {
      peer->outbox.push(request.token);
      ring_bell(*peer->bell, peer->their_slot, peer->pipe);
    }
    if (request.signalled) queue_completion(request);
  }
}

// --- Polling ---------------------------------------------------------------------------------------------

void ShmTransport::set_pending(std::uint32_t slot) {
  pending_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  pending_summary_ |= std::uint64_t{1} << (slot / 64);
}

void ShmTransport::clear_pending(std::uint32_t slot) {
  pending_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
  if (pending_[slot / 64] == 0) pending_summary_ &= ~(std::uint64_t{1} << (slot / 64));
}

std::uint32_t ShmTransport::next_pending() const {
  // Searches from the cursor, then from the start. At least one bit is set.
  const std::uint32_t word = cursor_ / 64;
  if (const std::uint64_t rest = pending_[word] & (~std::uint64_t{0} << (cursor_ % 64)); rest != 0) {
    return word * 64 + static_cast<std::uint32_t>(std::countr_zero(rest));
  }
  const std::uint64_t above = pending_summary_ & (~std::uint64_t{0} << word << 1);
  const auto next = static_cast<std::uint32_t>(std::countr_zero(above != 0 ? above : pending_summary_));
  return next * 64 + static_cast<std::uint32_t>(std::countr_zero(pending_[next]));
}

std::size_t ShmTransport::drain(std::uint32_t slot, std::span<Event> events) {
  Endpoint* peer = by_slot_[slot];
  if (peer == nullptr) {
    clear_pending(slot);
    return 0;
  }
  std::size_t filled = 0;
  while (filled < events.size()) {
    const auto token = peer->inbox.pop();
    if (!token) {
      clear_pending(slot);
      if (ring(slot)->owner.load(std::memory_order_acquire) == 0) [[unlikely]] {
        break_endpoint(
            *peer,
            Status::error(Code::kPeerLost, fmt::format("shm: peer {} has closed its endpoint", peer->peer),
                          Scope::kPeer),
            true);
      }
      break;
    }
    Event& event = events[filled++];
    event.kind = Event::Kind::kArrival;
    event.peer = peer->peer;
    event.token = *token;
    event.context = 0;
    clear_error(event);
  }
  if (peer->inbox.publish_if_due() && peer->bell != nullptr) [[unlikely]] {
    ring_bell(*peer->bell, peer->their_slot, peer->pipe);
  }
  return filled;
}

std::size_t ShmTransport::take_arrivals(std::span<Event> events) {
  bell_->take([this](std::uint32_t word, std::uint64_t bits) {
    pending_[word] |= bits;
    pending_summary_ |= std::uint64_t{1} << word;
  });
  std::size_t filled = 0;
  while (filled < events.size() && pending_summary_ != 0) {
    const std::uint32_t slot = next_pending();
    filled += drain(slot, events.subspan(filled));
    cursor_ = (slot + 1) % Doorbell::kMaxRings;
  }
  return filled;
}

std::size_t ShmTransport::take_completions(std::span<Event> events) {
  std::size_t filled = 0;
  for (; filled < events.size() && num_completions_ > 0; --num_completions_) {
    const Completion& done = completions_[completions_head_];
    Event& event = events[filled++];
    event.kind = Event::Kind::kCompletion;
    event.peer = done.peer;
    event.token = done.token;
    event.context = done.context;
    clear_error(event);
    completions_head_ = completions_head_ + 1 == completions_.size() ? 0 : completions_head_ + 1;
  }
  return filled;
}

std::size_t ShmTransport::take_broken(std::span<Event> events) {
  std::size_t filled = 0;
  for (auto it = broken_.begin(); it != broken_.end() && filled < events.size();) {
    const Endpoint* peer = find_endpoint(it->peer);
    if (it->after_arrivals && peer != nullptr && !peer->inbox.empty()) {
      ++it;
      continue;
    }
    Event& event = events[filled++];
    event.kind = Event::Kind::kPeerDead;
    event.peer = it->peer;
    event.token = 0;
    event.context = 0;
    event.error = std::move(it->error);
    it = broken_.erase(it);
  }
  return filled;
}

std::size_t ShmTransport::poll(std::span<Event> events) {
  std::size_t filled = take_completions(events);
  filled += take_arrivals(events.subspan(filled));
  if (filled == 0 && ++idle_polls_ % kIdlePollsPerLook == 0) look_at_processes();
  if (!broken_.empty()) [[unlikely]]
    filled += take_broken(events.subspan(filled));
  return filled;
}

// --- Sleeping --------------------------------------------------------------------------------------------

Armed ShmTransport::arm() {
  bell_->fall_asleep();
  const bool ready = bell_->rung() || pending_summary_ != 0 || num_completions_ > 0 || !broken_.empty();
  if (ready) bell_->wake_up();  // saves senders the wake-up
  return {.ready = ready, .fd = watch_.fd()};
}

void ShmTransport::disarm() {
  bell_->wake_up();
  watch_.empty();
  look_at_processes();
}

}  // namespace hips::shm
