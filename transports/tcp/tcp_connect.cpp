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

/// Reads what a peer's open() made.
Status read_address(std::span<const std::byte> bytes, WireAddress& wire) {
  if (bytes.size() != sizeof wire)
    return misuse(fmt::format("tcp: an address of {} bytes; it has {}", bytes.size(), sizeof wire));
  std::memcpy(&wire, bytes.data(), sizeof wire);
  if (wire.magic != kMagic)
    return misuse(
        fmt::format("tcp: an address that begins with {:#x}, not {:#x}; do both ends run the same version "
                    "on machines of the same byte order?",
                    wire.magic, kMagic));
  if (wire.length != sizeof(sockaddr_in) && wire.length != sizeof(sockaddr_in6))
    return misuse(fmt::format("tcp: an address whose socket address has {} bytes", wire.length));
  sa_family_t family = AF_UNSPEC;
  std::memcpy(&family, wire.address.data(), sizeof family);
  if (family != (wire.length == sizeof(sockaddr_in) ? AF_INET : AF_INET6))
    return misuse(fmt::format("tcp: an address of the unknown family {}", family));
  wire.host.back() = 0;
  return Status::success();
}

}  // namespace

Endpoint* TcpTransport::endpoint(PeerId peer) const {
  return peer >= 0 && static_cast<std::size_t>(peer) < endpoints_.size()
             ? endpoints_[static_cast<std::size_t>(peer)].get()
             : nullptr;
}

void TcpTransport::watch(Endpoint& mine, std::uint32_t events) {
  Status status = watch(mine.fd.get(), Watched::kEndpoint, static_cast<std::uint32_t>(mine.peer), events,
                        std::exchange(mine.watched, events));
  if (!status.ok() && events != 0) break_endpoint(mine, std::move(status));
}

Result<Address> TcpTransport::open(PeerId peer) {
  if (peer < 0) return fail(misuse(fmt::format("tcp: {} is no peer", peer)));
  if (endpoint(peer) != nullptr) return fail(misuse(fmt::format("tcp: peer {} is open already", peer)));
  const auto index = static_cast<std::size_t>(peer);
  if (index >= endpoints_.size()) endpoints_.resize(index + 1);
  endpoints_[index] = std::make_unique<Endpoint>(peer, options_.queue_entries);
  WireAddress wire;
  wire.token = endpoints_[index]->mine;
  wire.pid = getpid();
  wire.length = doorman_.address().length;
  std::memcpy(wire.address.data(), &doorman_.address().storage,
              std::min<std::size_t>(wire.length, wire.address.size()));
  if (gethostname(wire.host.data(), wire.host.size() - 1) != 0) wire.host = {'?'};
  Address address(sizeof wire);
  std::memcpy(address.data(), &wire, sizeof wire);
  return address;
}

Status TcpTransport::connect(PeerId peer, std::span<const std::byte> address) {
  Endpoint* mine = endpoint(peer);
  if (mine == nullptr) return misuse(fmt::format("tcp: peer {} is not open", peer));
  if (mine->state != Endpoint::State::kOpen)
    return misuse(fmt::format("tcp: peer {} is connected already", peer));
  WireAddress wire;
  if (Status status = read_address(address, wire); !status.ok()) return status;
  if (wire.token == mine->mine) return misuse(fmt::format("tcp: the address of peer {} is our own", peer));
  mine->theirs = wire.token;
  mine->address.length = wire.length;
  std::memcpy(&mine->address.storage, wire.address.data(), wire.length);
  mine->name = fmt::format("pid {} on {} ({})", wire.pid, wire.host.data(), to_string(mine->address));
  mine->state = Endpoint::State::kConnecting;
  // Both sides know both tokens, so they agree on who dials without a word.
  if (mine->theirs < mine->mine) {
    if (mine->fd.valid()) settle(*mine);
    return Status::success();
  }
  auto dialled = dial(options_.address, mine->address, link_options_);
  if (!dialled) {
    mine->state = Endpoint::State::kBroken;
    return std::move(dialled).error();
  }
  mine->fd = *std::move(dialled);
  watch(*mine, EPOLLOUT);
  return Status::success();
}

void TcpTransport::close(PeerId peer) {
  Endpoint* mine = endpoint(peer);
  if (mine == nullptr) return;
  if (mine->state == Endpoint::State::kConnected) flush(*mine);
  if (mine->fd.valid()) {
    if (mine->watched != 0) watch(*mine, 0);
    std::array<std::byte, sizeof(Hello) + sizeof(FrameHeader)> words;
    std::size_t size = 0;
    // A peer that was dialled and not yet greeted learns who it was that left.
    if (mine->state == Endpoint::State::kConnecting && !mine->said_hello) {
      const Hello hello{.to = mine->theirs};
      std::memcpy(words.data(), &hello, sizeof hello);
      size += sizeof hello;
    }
    // Behind half a frame nothing can be said; the peer sees the end in the middle of it.
    if (mine->state != Endpoint::State::kOpen && mine->outbox.between_frames()) {
      const FrameHeader goodbye{.kind = FrameHeader::Kind::kGoodbye};
      std::memcpy(words.data() + size, &goodbye, sizeof goodbye);
      size += sizeof goodbye;
    }
    Farewell farewell(std::move(mine->fd), std::span(words).first(size), std::move(mine->outbox));
    if (!farewell.step()) farewells_.push_back(std::move(farewell));
  }
  forget_events(peer);
  endpoints_[static_cast<std::size_t>(peer)].reset();
}

void TcpTransport::forget_events(PeerId peer) {
  const auto is_peer = [peer](const Endpoint* mine) { return mine->peer == peer; };
  std::erase_if(ready_, is_peer);
  std::erase_if(finished_, is_peer);
  std::erase_if(broken_, [peer](const Event& event) { return event.peer == peer; });
}

void TcpTransport::step_farewells() {
  std::erase_if(farewells_, [](Farewell& farewell) { return farewell.step(); });
}

// --- Hellos ----------------------------------------------------------------------------------------------

void TcpTransport::take_strangers() {
  // Not without end, so that a crowd at the door does not hold up those inside.
  for (int i = 0; i < 64; ++i) {
    const int stranger = doorman_.accept();
    if (stranger < 0) break;
    (void)watch(stranger, Watched::kStranger, static_cast<std::uint32_t>(stranger), EPOLLIN);
    hear_stranger(stranger);
  }
  if (doorman_.may_accept()) return;
  (void)watch(doorman_.listener(), Watched::kListener, 0, 0, EPOLLIN);
  listening_ = false;
}

void TcpTransport::listen_again() {
  if (doorman_.may_accept()) listening_ = watch(doorman_.listener(), Watched::kListener, 0, EPOLLIN).ok();
}

void TcpTransport::hear_stranger(int stranger) {
  auto guest = doorman_.hear(stranger);
  if (!guest) return;
  (void)watch(guest->fd.get(), Watched::kStranger, 0, 0, EPOLLIN);
  const auto at = std::find_if(endpoints_.begin(), endpoints_.end(),
                               [&](const auto& mine) { return mine != nullptr && mine->mine == guest->to; });
  const bool expected = at != endpoints_.end() && !(*at)->fd.valid() &&
                        ((*at)->state == Endpoint::State::kOpen ||
                         ((*at)->state == Endpoint::State::kConnecting && (*at)->theirs < (*at)->mine));
  if (!expected) {
    log::info(log::Subsystem::kTransport, "tcp: {}: sent away somebody who looked for an endpoint that is {}",
              to_string(doorman_.address()), at == endpoints_.end() ? "not here" : "taken");
    return;
  }
  (*at)->fd = std::move(guest->fd);
  if ((*at)->state == Endpoint::State::kConnecting) settle(**at);
}

void TcpTransport::say_hello(Endpoint& mine) {
  if (const int error = connect_error(mine.fd.get()); error != 0) {
    connection_ended(mine, error);
    return;
  }
  const Hello hello{.to = mine.theirs};
  // The first bytes of a connection fit into any buffer.
  const ssize_t sent = send(mine.fd.get(), &hello, sizeof hello, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != sizeof hello) {
    connection_ended(mine, sent < 0 ? errno : EIO);
    return;
  }
  mine.said_hello = true;
  watch(mine, EPOLLIN);
}

bool TcpTransport::hear_hello(Endpoint& mine) {
  const auto hello = mine.inbox.next_hello();
  if (!hello) return false;
  if (hello->magic != kMagic || hello->to != mine.mine) {
    break_endpoint(mine, Status::error(Code::kPeerLost,
                                       fmt::format("tcp: {}: somebody else answers in place of {}",
                                                   options_.device, mine.name),
                                       Scope::kPeer));
    return true;
  }
  settle(mine);
  return true;
}

/// The other side has proved itself: what was posted meanwhile may go.
void TcpTransport::settle(Endpoint& mine) {
  if (!mine.said_hello) say_hello(mine);
  if (mine.state != Endpoint::State::kConnecting) return;
  mine.state = Endpoint::State::kConnected;
  mine.outbox.set_up(mine.fd.get(), options_.zero_copy);
  log::debug(log::Subsystem::kTransport, "tcp: {}: connected to {}", options_.device, mine.name);
  flush(mine);
}

// --- Ends ------------------------------------------------------------------------------------------------

void TcpTransport::break_endpoint(Endpoint& mine, Status error, Ending ending) {
  if (mine.state == Endpoint::State::kBroken) return;
  mine.state = Endpoint::State::kBroken;
  log::info(log::Subsystem::kTransport, "{}", error.message);
  if (mine.fd.valid() && mine.watched != 0) watch(mine, 0);
  if (ending == Ending::kHangUp && mine.fd.valid()) {
    // A forked child may hold the socket too, and would keep the connection up.
    (void)shutdown(mine.fd.get(), SHUT_RDWR);
    mine.fd.reset();
  }
  std::erase(finished_, &mine);  // no completion comes after the end
  mine.finished = false;
  error.scope = Scope::kPeer;
  Event event;
  event.kind = Event::Kind::kPeerDead;
  event.peer = mine.peer;
  event.error = std::move(error);
  broken_.push_back(std::move(event));
}

void TcpTransport::connection_ended(Endpoint& mine, int error) {
  if (error == 0) error = mine.send_error;
  std::string text;
  if (mine.state == Endpoint::State::kConnecting) {
    text = error != 0
               ? fmt::format("tcp: {}: cannot connect to {}: {}", options_.device, mine.name,
                             std::strerror(error))
               : fmt::format("tcp: {}: {} hung up before it said hello: it has ended, or closed its endpoint",
                             options_.device, mine.name);
  } else if (error != 0) {
    text = fmt::format("tcp: {}: the connection to {} broke: {}", options_.device, mine.name,
                       std::strerror(error));
  } else {
    text = fmt::format("tcp: {}: {} ended {}without a goodbye; see its output", options_.device, mine.name,
                       mine.inbox.between_frames() ? "" : "in the middle of a message, ");
  }
  Status status = Status::error(Code::kPeerLost, std::move(text), Scope::kPeer);
  status.sys_errno = error;
  break_endpoint(mine, std::move(status));
}

void TcpTransport::refuse(PeerId peer) {
  const bool told =
      std::any_of(broken_.begin(), broken_.end(), [&](const Event& e) { return e.peer == peer; });
  if (told) return;
  Event event;
  event.kind = Event::Kind::kPeerDead;
  event.peer = peer;
  event.error = misuse(fmt::format("tcp: a request to peer {}, which is not connected", peer));
  broken_.push_back(std::move(event));
}

}  // namespace hips::tcp
