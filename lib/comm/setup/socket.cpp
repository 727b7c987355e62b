#include "lib/comm/setup/socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace hips::comm {
namespace {

/// The kernel sends a keepalive probe every second, or every tenth of `dead_after_ns` if that is longer.
/// Unacknowledged data has the same limit.
void set_link_options(int fd, std::int64_t dead_after_ns) {
  const auto dead_after_ms =
      static_cast<int>(std::clamp<std::int64_t>(dead_after_ns / 1'000'000, 2000, 1 << 30));
  const int on = 1, interval_s = std::max(1, dead_after_ms / 10'000), idle_s = interval_s;
  const int probes = std::max(1, dead_after_ms / 1000 / interval_s - 1);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_after_ms, sizeof dead_after_ms);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0)
    return fail(Code::kInvalidArgument,
                fmt::format("host \"{}\" does not resolve: {}", host, gai_strerror(error)));
  std::vector<SocketAddress> addresses;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.length = info->ai_addrlen;
    addresses.push_back(address);
  }
  freeaddrinfo(list);
  return addresses;
}

Result<std::optional<UniqueFd>> accept_tcp(int listener, std::int64_t dead_after_ns) {
  UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid() && (errno == EMFILE || errno == ENFILE)) {
    const int error = errno;
    rlimit limit{};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return fail(socket_error(
        error,
        fmt::format("no descriptor is left for another connection; raise the limit of {} with \"ulimit -n\"",
                    limit.rlim_cur)));
  }
  if (!fd.valid()) return std::optional<UniqueFd>();
  set_link_options(fd.get(), dead_after_ns);
  return std::optional<UniqueFd>(std::move(fd));
}

void allow_descriptors(std::size_t more) {
  rlimit limit{};
  // A new descriptor gets the lowest free number, so about this many are open.
  const UniqueFd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t open_now = next.valid() ? static_cast<rlim_t>(next.get()) : limit.rlim_cur;
  const rlim_t wanted = std::min<rlim_t>(open_now + more, limit.rlim_max);
  if (wanted <= limit.rlim_cur) return;
  limit.rlim_cur = wanted;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

Result<UniqueFd> connect_tcp(const SocketAddress& address, std::int64_t dead_after_ns) {
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail(socket_error(errno, "cannot create a socket"));
  set_link_options(fd.get(), dead_after_ns);
  if (connect(fd.get(), address.get(), address.length) != 0 && errno != EINPROGRESS)
    return fail(socket_error(errno, fmt::format("cannot connect to {}", to_string(address))));
  return fd;
}

FrameReader::State FrameReader::fill(int fd) {
  while (true) {
    // An unknown process may send without end: one frame at a time is enough.
    if (const auto length = next_length()) {
      if (*length > max_bytes_) return State::kBroken;
      if (buffer_.size() - sizeof *length >= *length) return State::kOpen;
    }
    std::byte chunk[16384];
    // What has been taken from the socket must not be lost for want of memory.
    if (buffer_.capacity() - buffer_.size() < sizeof chunk)
      buffer_.reserve(std::max(2 * buffer_.capacity(), buffer_.size() + sizeof chunk));
    const ssize_t got = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (got > 0) {
      buffer_.insert(buffer_.end(), chunk, chunk + got);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return State::kOpen;
    sys_errno = got == 0 ? 0 : errno;
    return State::kClosed;
  }
}

std::optional<std::uint32_t> FrameReader::next_length() const {
  std::uint32_t length = 0;
  if (buffer_.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, buffer_.data(), sizeof length);
  return length;
}

std::optional<std::vector<std::byte>> FrameReader::next() {
  const auto length = next_length();
  if (!length || *length > max_bytes_ || buffer_.size() - sizeof *length < *length) return std::nullopt;
  const auto begin = buffer_.begin() + sizeof *length;
  std::vector<std::byte> frame(begin, begin + *length);
  buffer_.erase(buffer_.begin(), begin + *length);
  return frame;
}

void FrameWriter::push(std::span<const std::byte> frame) {
  if (empty()) {
    buffer_.clear();
    sent_ = 0;
  }
  const auto length = static_cast<std::uint32_t>(frame.size());
  const std::size_t before = buffer_.size();
  buffer_.resize(before + sizeof length +
                 frame.size());  // all of the frame, or nothing where there is no memory
  std::memcpy(buffer_.data() + before, &length, sizeof length);
  std::copy(frame.begin(), frame.end(),
            buffer_.begin() + static_cast<std::ptrdiff_t>(before + sizeof length));
}

bool FrameWriter::flush(int fd) {
  while (!empty()) {
    const ssize_t sent =
        send(fd, buffer_.data() + sent_, buffer_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      sent_ += static_cast<std::size_t>(sent);
      continue;
    }
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK;
  }
  // Frames of the set-up are long, and there may be thousands of writers.
  constexpr std::size_t kKept = 4096;
  if (buffer_.capacity() > kKept) {
    buffer_ = std::vector<std::byte>();
    sent_ = 0;
  }
  return true;
}

}  // namespace hips::comm
