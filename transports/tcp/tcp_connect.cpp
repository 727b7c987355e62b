#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "transports/tcp/link.hpp"
#include "transports/tcp/tcp_transport.hpp"

namespace hips::tcp {

using transport::Address;
using transport::Event;
using transport::PeerId;

namespace {

Status misuse(std::string message) {
  return Status::error(Code::kInvalidArgument, std::move(message), Scope::kPeer);
}

/// Parses the address from a peer's open().
Status read_address(std::span<const std::byte> bytes, TcpAddress& wire) {
  if (bytes.size() != sizeof wire)
    return misuse(fmt::format("tcp: the address has {} bytes; expected {}", bytes.size(), sizeof wire));
  std::memcpy(&wire, bytes.data(), sizeof wire);
  if (wire.magic != kMagic)
    return misuse(
        fmt::format("tcp: the address begins with {:#x}; expected {:#x}. Both ends must run the same version "
                    "on nodes of the same byte order",
                    wire.magic, kMagic));
  if (wire.length != sizeof(sockaddr_in) && wire.length != sizeof(sockaddr_in6))
    return misuse(fmt::format("tcp: the socket address in the address has {} bytes; expected {} or {}",
                              wire.length, sizeof(sockaddr_in), sizeof(sockaddr_in6)));
  sa_family_t family = AF_UNSPEC;
  std::memcpy(&family, wire.address.data(), sizeof family);
  if (family != (wire.length == sizeof(sockaddr_in) ? AF_INET : AF_INET6))
    return misuse(
        fmt::format("tcp: the address has address family {}; expected AF_INET or AF_INET6", family));
  wire.host.back() = 0;
  return Status::success();
}

}  // namespace

TcpEndpoint* TcpTransport::find_endpoint(PeerId peer) const {
  return peer >= 0 && static_cast<std::size_t>(peer) < endpoints_.size()
             ? endpoints_[static_cast<std::size_t>(peer)].get()
             : nullptr;
}

void TcpTransport::watch(TcpEndpoint& endpoint, std::uint32_t events) {
  Status status = watch(endpoint.fd.get(), Watched::kEndpoint, static_cast<std::uint32_t>(endpoint.peer),
                        events, std::exchange(endpoint.watched, events));
  if (!status.ok() && events != 0) break_endpoint(endpoint, std::move(status));
}

Result<Address> TcpTransport::open(PeerId peer) {
  if (peer < 0) return fail(misuse(fmt::format("tcp: invalid peer {}; peers count from 0", peer)));
  if (find_endpoint(peer) != nullptr)
    return fail(misuse(fmt::format("tcp: peer {} is already open; close it first", peer)));
  const auto index = static_cast<std::size_t>(peer);
  if (index >= endpoints_.size()) {
    if (index >= endpoints_.capacity()) {
      // The endpoints last: without memory for one of these there are no more than before.
      const std::size_t capacity = std::max(2 * endpoints_.size(), index + 1);
      ready_.set_capacity(capacity);
      finished_.set_capacity(capacity);
      posted_.reserve(capacity);
      endpoints_.reserve(capacity);
    }
    endpoints_.resize(index + 1);
  }
  endpoints_[index] = std::make_unique<TcpEndpoint>(peer, options_.queue_entries);
  TcpAddress wire;
  wire.token = endpoints_[index]->own_token;
  wire.pid = getpid();
  wire.length = acceptor_.address().length;
  std::memcpy(wire.address.data(), &acceptor_.address().storage,
              std::min<std::size_t>(wire.length, wire.address.size()));
  if (gethostname(wire.host.data(), wire.host.size() - 1) != 0) wire.host = {'?'};
  Address address(sizeof wire);
  std::memcpy(address.data(), &wire, sizeof wire);
  return address;
}

Status TcpTransport::connect(PeerId peer, std::span<const std::byte> address) {
  TcpEndpoint* endpoint = find_endpoint(peer);
  if (endpoint == nullptr) return misuse(fmt::format("tcp: peer {} is not open", peer));
  if (endpoint->state != TcpEndpoint::State::kOpen)
    return misuse(fmt::format("tcp: peer {} is already connected", peer));
  TcpAddress wire;
  if (Status status = read_address(address, wire); !status.ok()) return status;
  if (wire.token == endpoint->own_token)
    return misuse(
        fmt::format("tcp: the address of peer {} is that of this endpoint; expected the peer's", peer));
  endpoint->peer_token = wire.token;
  endpoint->address.length = wire.length;
  std::memcpy(&endpoint->address.storage, wire.address.data(), wire.length);
  endpoint->name = fmt::format("pid {} on {} ({})", wire.pid, wire.host.data(), to_string(endpoint->address));
  endpoint->state = TcpEndpoint::State::kConnecting;
  // Both sides know both tokens, so they agree on who connects without communication.
  if (endpoint->peer_token < endpoint->own_token) {
    if (endpoint->fd.valid()) finish_connecting(*endpoint);
    return Status::success();
  }
  auto socket = dial(options_.address, endpoint->address, link_options_);
  if (!socket) {
    endpoint->state = TcpEndpoint::State::kBroken;
    return std::move(socket).error();
  }
  endpoint->fd = *std::move(socket);
  watch(*endpoint, EPOLLOUT);
  return Status::success();
}

void TcpTransport::close(PeerId peer) {
  TcpEndpoint* endpoint = find_endpoint(peer);
  if (endpoint == nullptr) return;
  if (endpoint->state == TcpEndpoint::State::kConnected) flush(*endpoint);
  if (endpoint->fd.valid()) {
    if (endpoint->watched != 0) watch(*endpoint, 0);
    std::array<std::byte, sizeof(TcpHello) + sizeof(FrameHeader)> frames;
    std::size_t size = 0;
    // If the hello is not sent yet it goes first, so that the peer can tell which endpoint closed.
    if (endpoint->state == TcpEndpoint::State::kConnecting && !endpoint->hello_sent) {
      const TcpHello hello{.to = endpoint->peer_token};
      std::memcpy(frames.data(), &hello, sizeof hello);
      size += sizeof hello;
    }
    // After a partly sent frame no other can follow. The peer then sees the stream end within a frame.
    if (endpoint->state != TcpEndpoint::State::kOpen && endpoint->outbox.between_frames()) {
      const FrameHeader close_frame{.kind = FrameHeader::Kind::kClose};
      std::memcpy(frames.data() + size, &close_frame, sizeof close_frame);
      size += sizeof close_frame;
    }
    ClosingConnection closing(std::move(endpoint->fd), std::span(frames).first(size),
                              std::move(endpoint->outbox));
    if (!closing.progress()) closing_connections_.push_back(std::move(closing));
  }
  discard_events(peer);
  endpoints_[static_cast<std::size_t>(peer)].reset();
}

void TcpTransport::discard_events(PeerId peer) {
  const auto is_peer = [peer](const TcpEndpoint* endpoint) { return endpoint->peer == peer; };
  ready_.erase(std::remove_if(ready_.begin(), ready_.end(), is_peer), ready_.end());
  finished_.erase(std::remove_if(finished_.begin(), finished_.end(), is_peer), finished_.end());
  std::erase_if(broken_, [peer](const Event& event) { return event.peer == peer; });
}

void TcpTransport::progress_closing() {
  std::erase_if(closing_connections_, [](ClosingConnection& closing) { return closing.progress(); });
}

// --- Hellos ----------------------------------------------------------------------------------------------

void TcpTransport::accept_connections() {
  // Bounded, so that many new connections do not delay the established ones.
  for (int i = 0; i < 64; ++i) {
    const int pending = acceptor_.accept(endpoints_.size());
    if (pending < 0) break;
    if (!watch(pending, Watched::kPending, static_cast<std::uint32_t>(pending), EPOLLIN).ok()) {
      // Nobody would read its hello. The peer sees that it is closed.
      acceptor_.drop(pending);
      continue;
    }
    identify(pending);
  }
  if (acceptor_.may_accept()) return;
  (void)watch(acceptor_.listener(), Watched::kListener, 0, 0, EPOLLIN);
  accepting_ = false;
}

void TcpTransport::resume_accepting() {
  if (acceptor_.may_accept()) accepting_ = watch(acceptor_.listener(), Watched::kListener, 0, EPOLLIN).ok();
}

void TcpTransport::identify(int pending) {
  auto accepted = acceptor_.receive_hello(pending);
  if (!accepted) return;
  (void)watch(accepted->fd.get(), Watched::kPending, 0, 0, EPOLLIN);
  const auto at = std::find_if(endpoints_.begin(), endpoints_.end(), [&](const auto& endpoint) {
    return endpoint != nullptr && endpoint->own_token == accepted->to;
  });
  const bool expected =
      at != endpoints_.end() && !(*at)->fd.valid() &&
      ((*at)->state == TcpEndpoint::State::kOpen ||
       ((*at)->state == TcpEndpoint::State::kConnecting && (*at)->peer_token < (*at)->own_token));
  if (!expected) {
    log::info(log::Subsystem::kTransport, "tcp: {}: closed a connection for an endpoint that is {}",
              to_string(acceptor_.address()), at == endpoints_.end() ? "unknown" : "connected already");
    return;
  }
  (*at)->fd = std::move(accepted->fd);
  if ((*at)->state == TcpEndpoint::State::kConnecting) finish_connecting(**at);
}

void TcpTransport::send_hello(TcpEndpoint& endpoint) {
  if (const int error = connect_error(endpoint.fd.get()); error != 0) {
    connection_ended(endpoint, error);
    return;
  }
  const TcpHello hello{.to = endpoint.peer_token};
  // The hello fits into the buffer of a new connection.
  const ssize_t sent = send(endpoint.fd.get(), &hello, sizeof hello, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != sizeof hello) {
    connection_ended(endpoint, sent < 0 ? errno : EIO);
    return;
  }
  endpoint.hello_sent = true;
  watch(endpoint, EPOLLIN);
}

bool TcpTransport::receive_hello(TcpEndpoint& endpoint) {
  const auto hello = endpoint.inbox.next_hello();
  if (!hello) return false;
  if (hello->magic != kMagic || hello->to != endpoint.own_token) {
    break_endpoint(endpoint,
                   Status::error(Code::kPeerLost,
                                 fmt::format("tcp: {}: another process answers at the address of {}",
                                             options_.device, endpoint.name),
                                 Scope::kPeer));
    return true;
  }
  finish_connecting(endpoint);
  return true;
}

/// The peer has sent its token: connects the endpoint and sends what was posted meanwhile.
void TcpTransport::finish_connecting(TcpEndpoint& endpoint) {
  if (!endpoint.hello_sent) send_hello(endpoint);
  if (endpoint.state != TcpEndpoint::State::kConnecting) return;
  endpoint.state = TcpEndpoint::State::kConnected;
  endpoint.outbox.set_up(endpoint.fd.get(), options_.zero_copy);
  log::debug(log::Subsystem::kTransport, "tcp: {}: connected to {}", options_.device, endpoint.name);
  flush(endpoint);
}

// --- Failures --------------------------------------------------------------------------------------------

void TcpTransport::break_endpoint(TcpEndpoint& endpoint, Status error, Ending ending) {
  if (endpoint.state == TcpEndpoint::State::kBroken) return;
  log::info(log::Subsystem::kTransport, "{}", error.message);
  error.scope = Scope::kPeer;
  Event event;
  event.kind = Event::Kind::kPeerDead;
  event.peer = endpoint.peer;
  event.error = std::move(error);
  // Where there is no memory for it nothing has changed yet, and the next poll finds the end again.
  broken_.push_back(std::move(event));
  endpoint.state = TcpEndpoint::State::kBroken;
  if (endpoint.fd.valid() && endpoint.watched != 0) watch(endpoint, 0);
  if (ending == Ending::kShutdown && endpoint.fd.valid()) {
    // shutdown() is needed because a forked child may hold the socket and keep the connection open.
    (void)shutdown(endpoint.fd.get(), SHUT_RDWR);
    endpoint.fd.reset();
  }
  // No completion follows kPeerDead.
  finished_.erase(std::remove(finished_.begin(), finished_.end(), &endpoint), finished_.end());
  endpoint.finished = false;
}

void TcpTransport::connection_ended(TcpEndpoint& endpoint, int error) {
  if (error == 0) error = endpoint.send_error;
  std::string text;
  if (endpoint.state == TcpEndpoint::State::kConnecting) {
    text =
        error != 0
            ? fmt::format("tcp: {}: cannot connect to {}: {}", options_.device, endpoint.name,
                          std::strerror(error))
            : fmt::format(
                  "tcp: {}: {} closed the connection before its hello: it has ended, or closed its endpoint",
                  options_.device, endpoint.name);
  } else if (error != 0) {
    text = fmt::format("tcp: {}: the connection to {} failed: {}", options_.device, endpoint.name,
                       std::strerror(error));
  } else {
    text = fmt::format("tcp: {}: {} ended {}without closing its endpoint; see its output", options_.device,
                       endpoint.name, endpoint.inbox.between_frames() ? "" : "within a message and ");
  }
  Status status = Status::error(Code::kPeerLost, std::move(text), Scope::kPeer);
  status.sys_errno = error;
  break_endpoint(endpoint, std::move(status));
}

void TcpTransport::look_for_silence() {
  for (const auto& endpoint : endpoints_) {
    if (endpoint == nullptr || endpoint->state != TcpEndpoint::State::kConnected || !endpoint->fd.valid())
      continue;
    tcp_info info{};
    socklen_t size = sizeof info;
    // What was just sent is not acknowledged either: it is silence when the kernel has begun to repeat it.
    if (getsockopt(endpoint->fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || info.tcpi_unacked == 0 ||
        info.tcpi_retransmits == 0)
      continue;
    const std::int64_t silent_ns = std::int64_t{info.tcpi_last_ack_recv} * 1'000'000;
    if (silent_ns < options_.dead_after_ns) continue;
    Status status = Status::error(
        Code::kPeerLost,
        fmt::format(
            "tcp: {}: {} has acknowledged nothing for {:.1f} s; see the link of this NIC and of that one",
            options_.device, endpoint->name, static_cast<double>(silent_ns) / 1e9),
        Scope::kPeer);
    status.sys_errno = ETIMEDOUT;
    break_endpoint(*endpoint, std::move(status));
  }
}

void TcpTransport::report_unconnected(PeerId peer) {
  const bool reported =
      std::any_of(broken_.begin(), broken_.end(), [&](const Event& e) { return e.peer == peer; });
  if (reported) return;
  Event event;
  event.kind = Event::Kind::kPeerDead;
  event.peer = peer;
  event.error = misuse(fmt::format("tcp: post to peer {}, which is not connected", peer));
  broken_.push_back(std::move(event));
}

}  // namespace hips::tcp
