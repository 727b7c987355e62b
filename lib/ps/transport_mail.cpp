#include "lib/ps/transport_mail.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "lib/comm/control/wire.hpp"

namespace hips::ps {

using transport::Event;
using transport::Verb;
using transport::WorkRequest;

TransportMail::TransportMail(Options options, Receive receive, SharedMemory memory)
    : options_(std::move(options)), receive_(std::move(receive)), memory_(std::move(memory)), events_(64) {
  const std::size_t ring = options_.slot_bytes * options_.num_slots;
  for (const Rank rank : options_.peers) {
    index_[rank] = peers_.size();
    std::byte* const base = memory_.data() + 2 * ring * peers_.size();
    Peer& peer = peers_.emplace_back();
    peer.rank = rank;
    peer.received = base;
    peer.sent = base + ring;
    peer.arrived.resize(options_.num_slots);
  }
}

TransportMail::~TransportMail() {
  for (Port& port : ports_) {
    for (transport::PeerId id = 0; id < port.num_peers; ++id) port.transport->close(id);
    if (port.memory >= 0) port.transport->deregister(port.memory);
  }
}

Result<std::unique_ptr<TransportMail>> TransportMail::create(Options options, Receive receive) {
  const std::size_t bytes =
      std::max<std::size_t>(options.peers.size(), 1) * 2 * options.slot_bytes * options.num_slots;
  auto memory = SharedMemory::create(bytes);
  if (!memory) return fail(std::move(memory).error());
  return std::unique_ptr<TransportMail>(
      new TransportMail(std::move(options), std::move(receive), std::move(*memory)));
}

Result<std::size_t> TransportMail::add(std::unique_ptr<transport::Transport> made) {
  auto region = made->register_memory({.address = memory_.data(),
                                       .bytes = memory_.size(),
                                       .kind = transport::MemoryKind::kShared,
                                       .fd = memory_.fd()});
  if (!region) return fail(std::move(region).error());
  Port& port = ports_.emplace_back();
  port.transport = std::move(made);
  port.memory = region->local;
  port.region = region->remote;
  return ports_.size() - 1;
}

Result<std::vector<std::byte>> TransportMail::open(Rank rank, std::span<const std::size_t> transports) {
  Peer& to = peer(rank);
  comm::ByteWriter writer;
  writer.put(static_cast<std::uint64_t>(to.received - memory_.data()));
  for (const std::size_t transport : transports) {
    Port& port = ports_[transport];
    auto address = port.transport->open(port.num_peers);
    if (!address) return fail(std::move(address).error());
    to.paths.push_back({.port = transport, .id = port.num_peers++});
    port.peers.push_back(index_.at(rank));
    writer.put_bytes(*address);
    for (const std::uint64_t part : port.region.key) writer.put(part);
    writer.put(port.region.bytes);
  }
  return writer.take();
}

Status TransportMail::connect(Rank rank, std::span<const std::byte> introduction) {
  Peer& to = peer(rank);
  comm::ByteReader reader(introduction);
  to.remote_offset = reader.get<std::uint64_t>();
  for (Path& path : to.paths) {
    const auto address = reader.get_bytes();
    for (std::uint64_t& part : path.remote.key) part = reader.get<std::uint64_t>();
    path.remote.bytes = reader.get<std::uint64_t>();
    if (!reader.ok())
      return Status::error(Code::kMismatch, fmt::format("rank {} sent an incomplete address", rank));
    if (Status status = ports_[path.port].transport->connect(path.id, address); !status.ok()) return status;
  }
  if (reader.rest().empty()) return Status::success();
  return Status::error(Code::kMismatch, fmt::format("rank {} sent more addresses than the {} that lead to it",
                                                    rank, to.paths.size()));
}

std::size_t TransportMail::most_bytes() const {
  return room();
}

std::byte* TransportMail::begin(Rank to, std::size_t bytes) {
  if (to == options_.rank) {
    self_begin_ = to_self_.size();
    to_self_.resize(self_begin_ + bytes);
    return to_self_.data() + self_begin_;
  }
  Peer& peer_to = peer(to);
  if (peer_to.open_bytes > 0 && peer_to.open_bytes + bytes > room()) close_frame(peer_to);
  peer_to.in_overflow = !peer_to.overflow.empty() || !has_slot(peer_to);
  if (!peer_to.in_overflow)
    return slot(peer_to.sent, peer_to.written) + sizeof(FrameHead) + peer_to.open_bytes;
  auto& waiting = peer_to.overflow;
  if (waiting.empty() || waiting.back().size() + bytes > room()) waiting.emplace_back().reserve(room());
  peer_to.overflow_begin = waiting.back().size();
  waiting.back().resize(peer_to.overflow_begin + bytes);
  return waiting.back().data() + peer_to.overflow_begin;
}

void TransportMail::end(Rank to, std::size_t bytes) {
  if (to == options_.rank) {
    to_self_.resize(self_begin_ + bytes);
    return;
  }
  Peer& peer_to = peer(to);
  if (peer_to.in_overflow) {
    peer_to.overflow.back().resize(peer_to.overflow_begin + bytes);
  } else {
    peer_to.open_bytes += bytes;
  }
}

/// What has been written so far becomes a frame.
void TransportMail::close_frame(Peer& to, bool greets) {
  const FrameHead head{
      .number = to.written, .bytes = static_cast<std::uint32_t>(to.open_bytes), .greets = greets ? 1U : 0U};
  std::memcpy(slot(to.sent, to.written), &head, sizeof head);
  ++to.written;
  to.open_bytes = 0;
  post(to);
}

/// Posts complete frames, as many as the transport accepts.
void TransportMail::post(Peer& to) {
  while (to.posted != to.written) {
    Path& path = to.paths[to.posted % to.paths.size()];
    Port& port = ports_[path.port];
    std::byte* const frame = slot(to.sent, to.posted);
    FrameHead head;
    std::memcpy(&head, frame, sizeof head);
    head.consumed = to.taken;
    std::memcpy(frame, &head, sizeof head);
    WorkRequest request;
    request.verb = Verb::kPutNotify;
    request.peer = path.id;
    request.remote = &path.remote;
    request.remote_offset = to.remote_offset + (to.posted % options_.num_slots) * options_.slot_bytes;
    request.token = to.posted & ~kCreditBit;
    request.signalled = !port.transport->query().completes_on_post;
    request.num_pieces = 1;
    request.pieces[0] = {.address = frame, .bytes = sizeof head + head.bytes, .memory = port.memory};
    if (port.transport->post({&request, 1}) == 0) return;
    ++to.posted;
    to.told = to.taken;
  }
}

/// Tells a peer, without a frame, how many of its frames are consumed.
void TransportMail::tell(Peer& to) {
  const Path& path = to.paths.front();
  Port& port = ports_[path.port];
  WorkRequest request;
  request.verb = Verb::kPutNotify;
  request.peer = path.id;
  request.token = kCreditBit | (to.taken & ~kCreditBit);
  request.signalled = !port.transport->query().completes_on_post;
  if (port.transport->post({&request, 1}) == 1) to.told = to.taken;
}

/// Moves waiting frames into slots that have become free.
void TransportMail::refill(Peer& to) {
  while (!to.overflow.empty() && has_slot(to)) {
    if (to.open_bytes > 0) close_frame(to);
    if (!has_slot(to)) return;
    std::vector<std::byte> frame = std::move(to.overflow.front());
    to.overflow.pop_front();
    if (frame.empty()) continue;
    std::memcpy(slot(to.sent, to.written) + sizeof(FrameHead), frame.data(), frame.size());
    to.open_bytes = frame.size();
    close_frame(to);
  }
}

void TransportMail::send_written() {
  bool unsent = false;
  for (Peer& to : peers_) {
    if (!to.overflow.empty()) refill(to);
    if (to.open_bytes > 0 && to.written - to.consumed < kWindow) close_frame(to);
    if (to.posted != to.written) post(to);
    if (to.taken - to.told >= kTellAfter) tell(to);
    if (to.rank == options_.service)
      unsent = to.open_bytes > 0 || to.posted != to.written || !to.overflow.empty();
  }
  if (unsent != has_unsent_.load(std::memory_order_relaxed))
    has_unsent_.store(unsent, std::memory_order_release);
}

Status TransportMail::lost() const {
  if (!lost_.ok()) return lost_;
  for (const Port& port : ports_)
    if (!port.down.ok()) return port.down;
  return Status::success();
}

void TransportMail::greet_all() {
  for (Peer& to : peers_)
    for (std::size_t i = 0; i < to.paths.size(); ++i) close_frame(to, true);
}

std::size_t TransportMail::num_connections() const {
  std::size_t num = 0;
  for (const Peer& to : peers_) num += to.paths.size();
  return num;
}

bool TransportMail::has_room(Rank to) const {
  if (to == options_.rank) return to_self_.size() < options_.slot_bytes;
  const Peer& peer_to = peers_[index_.at(to)];
  return peer_to.overflow.empty() && peer_to.written - peer_to.consumed < kWindow;
}

void TransportMail::on_event(Port& port, const Event& event) {
  switch (event.kind) {
    case Event::Kind::kArrival: {
      Peer& from = peers_[port.peers[static_cast<std::size_t>(event.peer)]];
      const std::uint32_t number = event.token & ~kCreditBit;
      if ((event.token & kCreditBit) == 0) {
        from.arrived[number % options_.num_slots] = true;
      } else if (const std::uint32_t more = (number - from.consumed) & ~kCreditBit;
                 more <= from.posted - from.consumed) {
        // One that a later frame has overtaken tells an older number, which looks like very many more.
        from.consumed += more;
      }
      return;
    }
    case Event::Kind::kPeerDead:
      if (lost_.ok()) {
        lost_ = event.error;
        lost_.code = Code::kPeerLost;
        lost_.rank = peers_[port.peers[static_cast<std::size_t>(event.peer)]].rank;
        lost_.message = fmt::format("{}: lost the connection to rank {}: {}", options_.name, lost_.rank,
                                    event.error.message);
      }
      return;
    case Event::Kind::kPortDown:
      port.down = event.error;
      return;
    case Event::Kind::kPortUp:
      port.down = {};
      return;
    case Event::Kind::kCompletion:
      return;
  }
}

/// Consumes the frames of a peer that have arrived, in the order of their numbers.
Status TransportMail::take(Peer& from) {
  while (from.arrived[from.taken % options_.num_slots]) {
    const std::byte* const frame = slot(from.received, from.taken);
    FrameHead head;
    std::memcpy(&head, frame, sizeof head);
    if (head.number != from.taken || head.bytes > room())
      return Status::error(Code::kMismatch,
                           fmt::format("rank {} sent frame {} of {} bytes where frame {} was expected",
                                       from.rank, head.number, head.bytes, from.taken),
                           Scope::kCommunicator);
    if (const std::uint32_t more = head.consumed - from.consumed; more <= from.posted - from.consumed)
      from.consumed += more;
    from.arrived[from.taken % options_.num_slots] = false;
    if (head.greets != 0) num_greeted_.fetch_add(1, std::memory_order_release);
    Status status = receive_(from.rank, {frame + sizeof head, head.bytes});
    ++from.taken;
    if (!status.ok()) return status;
  }
  return Status::success();
}

Status TransportMail::send_and_take_own() {
  // Taking it may write more.
  while (!to_self_.empty()) {
    from_self_.clear();
    from_self_.swap(to_self_);
    if (Status status = receive_(options_.rank, from_self_); !status.ok()) return status;
  }
  send_written();
  return Status::success();
}

Result<bool> TransportMail::progress() {
  bool moved = false;
  for (Port& port : ports_) {
    const std::size_t count = port.transport->poll(events_);
    for (std::size_t i = 0; i < count; ++i) on_event(port, events_[i]);
    moved |= count > 0;
  }
  if (moved)
    for (Peer& from : peers_)
      if (Status status = take(from); !status.ok()) return fail(std::move(status));
  moved |= !to_self_.empty();
  if (Status status = send_and_take_own(); !status.ok()) return fail(std::move(status));
  return moved;
}

bool TransportMail::arm(std::vector<pollfd>& fds) {
  for (Port& port : ports_) {
    const transport::Armed armed = port.transport->arm();
    if (armed.fd >= 0) fds.push_back({armed.fd, POLLIN, 0});
    if (armed.ready) return false;
  }
  return to_self_.empty();
}

void TransportMail::disarm() {
  for (Port& port : ports_) port.transport->disarm();
}

}  // namespace hips::ps
