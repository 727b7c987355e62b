#include "transports/tcp/doorman.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "lib/base/log.hpp"
#include "lib/base/wait/clock.hpp"

namespace hips::tcp {
namespace {

constexpr std::int64_t kStrangerPatienceNs = 10'000'000'000;
constexpr std::int64_t kPauseNs = 1'000'000'000;

}  // namespace

Result<Doorman> Doorman::create(const SocketAddress& address, const LinkOptions& options, int epoll) {
  auto listener = listen_tcp(address);
  if (!listener) return fail(std::move(listener).error());
  return Doorman(*std::move(listener), options, epoll);
}

Doorman::Doorman(UniqueFd listener, const LinkOptions& options, int epoll)
    : listener_(std::move(listener)),
      address_(local_address(listener_.get())),
      options_(options),
      epoll_(epoll) {
  // A receive buffer limits the window from the handshake on, so the listener's counts.
  if (options.socket_buffer_bytes > 0) set_up_link(listener_.get(), options);
  // A connection begins with the listener's congestion control, and where that paces, goes on being paced
  // whatever is chosen later. At other addresses it stays the system's: other hosts dial them, too, and
  // DCTCP is agreed on in the handshake.
  if (is_loopback(address_)) choose_congestion_control(listener_.get(), address_);
}

Doorman::Strangers::iterator Doorman::send_away(Strangers::iterator stranger) {
  // Not left to close(): a forked child may hold the same description, which would stay watched.
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, stranger->first, nullptr);
  return strangers_.erase(stranger);
}

void Doorman::send_away_the_silent() {
  const std::int64_t now_ns = SystemClock::instance().now_ns();
  for (auto one = strangers_.begin(); one != strangers_.end();)
    one = now_ns - one->second.since_ns > kStrangerPatienceNs ? send_away(one) : std::next(one);
}

int Doorman::accept() {
  send_away_the_silent();
  SocketAddress peer{.length = sizeof(sockaddr_storage)};
  UniqueFd fd(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.length,
                      SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log::error(log::Subsystem::kTransport,
                 "tcp: {} cannot take a connection: {}; raise the limit of open files (ulimit -n)",
                 to_string(address_), std::strerror(errno));
      refused_until_ns_ = SystemClock::instance().now_ns() + kPauseNs;
    }
    return -1;
  }
  set_up_link(fd.get(), options_);
  choose_congestion_control(fd.get(), peer);
  const int number = fd.get();
  Stranger& stranger = strangers_[number];
  stranger.fd = std::move(fd);
  stranger.since_ns = SystemClock::instance().now_ns();
  return number;
}

bool Doorman::may_accept() const {
  return refused_until_ns_ == 0 || SystemClock::instance().now_ns() > refused_until_ns_;
}

std::optional<Doorman::Guest> Doorman::hear(int number) {
  const auto at = strangers_.find(number);
  if (at == strangers_.end()) return std::nullopt;
  Stranger& stranger = at->second;
  // Not more than the hello: what follows belongs to the endpoint.
  const ssize_t got = recv(number, stranger.said.data() + stranger.bytes,
                           stranger.said.size() - stranger.bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  if (got > 0) stranger.bytes += static_cast<std::size_t>(got);
  Hello hello;
  // A wrong beginning is enough to know.
  if (stranger.bytes >= sizeof hello.magic) {
    std::memcpy(&hello, stranger.said.data(), stranger.bytes);
    if (hello.magic == kMagic && stranger.bytes < sizeof hello && got > 0) return std::nullopt;
    if (hello.magic == kMagic && stranger.bytes == sizeof hello) {
      Guest guest{.fd = std::move(stranger.fd), .to = hello.to};
      strangers_.erase(at);
      return guest;
    }
  } else if (got > 0) {
    return std::nullopt;
  }
  log::info(log::Subsystem::kTransport, "tcp: {} sent away somebody who does not speak HiPS",
            to_string(address_));
  send_away(at);
  return std::nullopt;
}

}  // namespace hips::tcp
