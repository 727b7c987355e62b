#include "transports/tcp/closing_connection.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/base/wait/clock.hpp"

namespace hips::tcp {
namespace {

constexpr std::int64_t kDrainTimeoutNs = 2'000'000'000;
/// Two retransmissions, on networks of nodes that stand together.
constexpr std::int64_t kSilentNs = 500'000'000;

/// True if nothing that is on its way was acknowledged for so long: the path is cut, and waiting is of no use.
bool is_silent(int fd, std::int64_t waited_ns) {
  if (waited_ns < kSilentNs) return false;
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_unacked > 0 &&
         std::int64_t{info.tcpi_last_ack_recv} * 1'000'000 >= kSilentNs;
}

}  // namespace

ClosingConnection::ClosingConnection(UniqueFd fd, std::span<const std::byte> final_frames, Outbox outbox)
    : outbox_(std::move(outbox)),
      fd_(std::move(fd)),
      size_(std::min(final_frames.size(), final_frames_.size())),
      begin_ns_(SystemClock::instance().now_ns()) {
  std::copy_n(final_frames.begin(), size_, final_frames_.begin());
}

bool ClosingConnection::send_final_frames() {
  while (sent_ < size_) {
    const ssize_t sent =
        send(fd_.get(), final_frames_.data() + sent_, size_ - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      sent_ += static_cast<std::size_t>(sent);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool ClosingConnection::progress() {
  const std::int64_t waited_ns = SystemClock::instance().now_ns() - begin_ns_;
  const bool late = waited_ns > kDrainTimeoutNs || is_silent(fd_.get(), waited_ns);
  if (!send_final_frames()) return late || (errno != EAGAIN && errno != EWOULDBLOCK);
  if (!std::exchange(shutdown_sent_, true)) (void)shutdown(fd_.get(), SHUT_WR);
  for (int reads = 0; reads < 64; ++reads) {
    // MSG_TRUNC: the kernel discards the data without copying it.
    const ssize_t got = recv(fd_.get(), nullptr, std::size_t{1} << 20, MSG_TRUNC | MSG_DONTWAIT);
    if (got > 0) continue;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return true;
    break;
  }
  int unacknowledged = 0;
  if (ioctl(fd_.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0) return true;
  return late;
}

}  // namespace hips::tcp
