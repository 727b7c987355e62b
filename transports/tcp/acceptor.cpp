#include "transports/tcp/acceptor.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "lib/base/log.hpp"
#include "lib/base/wait/clock.hpp"

namespace hips::tcp {
namespace {

constexpr std::int64_t kHelloTimeoutNs = 10'000'000'000;
constexpr std::int64_t kAcceptPauseNs = 1'000'000'000;
constexpr std::size_t kManyPending = 64;

}  // namespace

Result<Acceptor> Acceptor::create(const SocketAddress& address, const LinkOptions& options, int epoll) {
  auto listener = listen_tcp(address);
  if (!listener) return fail(std::move(listener).error());
  return Acceptor(*std::move(listener), options, epoll);
}

Acceptor::Acceptor(UniqueFd listener, const LinkOptions& options, int epoll)
    : listener_(std::move(listener)),
      address_(local_address(listener_.get())),
      options_(options),
      epoll_(epoll) {
  // The receive buffer limits the window from the handshake on, so it must be set on the listener.
  if (options.socket_buffer_bytes > 0) set_up_link(listener_.get(), options);
  // An accepted connection inherits the listener's congestion control. If that paces, the connection stays
  // paced whatever is chosen later. At other than loopback addresses the system's choice stays: other nodes
  // connect there too, and DCTCP is negotiated in the handshake.
  if (is_loopback(address_)) choose_congestion_control(listener_.get(), address_);
}

Acceptor::PendingMap::iterator Acceptor::drop(PendingMap::iterator pending) {
  // close() alone is not enough: a forked child may hold the same file description, which would stay watched.
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, pending->first, nullptr);
  return pending_.erase(pending);
}

void Acceptor::drop(int pending) {
  if (const auto at = pending_.find(pending); at != pending_.end()) drop(at);
}

void Acceptor::drop_expired() {
  const std::int64_t now_ns = SystemClock::instance().now_ns();
  for (auto one = pending_.begin(); one != pending_.end();)
    one = now_ns - one->second.accepted_ns > kHelloTimeoutNs ? drop(one) : std::next(one);
}

int Acceptor::accept(std::size_t num_expected) {
  // A rank that computes sends its hello when it polls next: no reason to drop it while there are few.
  if (pending_.size() >= std::max(kManyPending, num_expected)) drop_expired();
  SocketAddress peer{.length = sizeof(sockaddr_storage)};
  UniqueFd fd(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.length,
                      SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log::error(log::Subsystem::kTransport,
                 "tcp: {} cannot accept a connection: {}; raise the limit of open files (ulimit -n)",
                 to_string(address_), std::strerror(errno));
      drop_expired();
      paused_until_ns_ = SystemClock::instance().now_ns() + kAcceptPauseNs;
    }
    return -1;
  }
  set_up_link(fd.get(), options_);
  choose_congestion_control(fd.get(), peer);
  const int number = fd.get();
  PendingConnection& pending = pending_[number];
  pending.fd = std::move(fd);
  pending.accepted_ns = SystemClock::instance().now_ns();
  return number;
}

bool Acceptor::may_accept() const {
  return paused_until_ns_ == 0 || SystemClock::instance().now_ns() > paused_until_ns_;
}

std::optional<Acceptor::Accepted> Acceptor::receive_hello(int number) {
  const auto at = pending_.find(number);
  if (at == pending_.end()) return std::nullopt;
  PendingConnection& pending = at->second;
  // Reads no more than the hello: the bytes after it belong to the endpoint.
  const ssize_t got = recv(number, pending.received.data() + pending.bytes,
                           pending.received.size() - pending.bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  if (got > 0) pending.bytes += static_cast<std::size_t>(got);
  TcpHello hello;
  // A wrong magic number suffices to reject the connection.
  if (pending.bytes >= sizeof hello.magic) {
    std::memcpy(&hello, pending.received.data(), pending.bytes);
    if (hello.magic == kMagic && pending.bytes < sizeof hello && got > 0) return std::nullopt;
    if (hello.magic == kMagic && pending.bytes == sizeof hello) {
      Accepted accepted{.fd = std::move(pending.fd), .to = hello.to};
      pending_.erase(at);
      return accepted;
    }
  } else if (got > 0) {
    return std::nullopt;
  }
  log::info(log::Subsystem::kTransport, "tcp: {} closed a connection that did not send a HiPS hello",
            to_string(address_));
  drop(at);
  return std::nullopt;
}

}  // namespace hips::tcp
