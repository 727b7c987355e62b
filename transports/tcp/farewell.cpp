#include "transports/tcp/farewell.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/base/wait/clock.hpp"

namespace hips::tcp {
namespace {

constexpr std::int64_t kFarewellPatienceNs = 2'000'000'000;

}  // namespace

Farewell::Farewell(UniqueFd fd, std::span<const std::byte> last_words, Outbox outbox)
    : outbox_(std::move(outbox)),
      fd_(std::move(fd)),
      size_(std::min(last_words.size(), last_words_.size())),
      until_ns_(SystemClock::instance().now_ns() + kFarewellPatienceNs) {
  std::copy_n(last_words.begin(), size_, last_words_.begin());
}

bool Farewell::send_last_words() {
  while (sent_ < size_) {
    const ssize_t sent =
        send(fd_.get(), last_words_.data() + sent_, size_ - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      sent_ += static_cast<std::size_t>(sent);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool Farewell::step() {
  const bool late = SystemClock::instance().now_ns() > until_ns_;
  if (!send_last_words()) return late || (errno != EAGAIN && errno != EWOULDBLOCK);
  if (!std::exchange(shut_, true)) (void)shutdown(fd_.get(), SHUT_WR);
  for (int turn = 0; turn < 64; ++turn) {
    // MSG_TRUNC: the kernel throws it away, nothing is copied.
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
