#include "transports/tcp/zero_copy.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

// Must follow the headers above, which declare the types that it uses.
#include <linux/errqueue.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace hips::tcp {

void ZeroCopySends::set_up(int fd, ZeroCopy use) {
  const int on = 1;
  if (use != ZeroCopy::kOff && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) == 0) use_ = use;
}

void ZeroCopySends::read_releases(int fd) {
  while (any_held()) {
    alignas(cmsghdr) std::array<std::byte, 256> control;
    msghdr message{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
      const bool is_error = (part->cmsg_level == SOL_IP && part->cmsg_type == IP_RECVERR) ||
                            (part->cmsg_level == SOL_IPV6 && part->cmsg_type == IPV6_RECVERR);
      if (!is_error) continue;
      sock_extended_err error;
      std::memcpy(&error, CMSG_DATA(part), sizeof error);
      if (error.ee_origin != SO_EE_ORIGIN_ZEROCOPY) continue;
      if ((error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0 && use_ == ZeroCopy::kOn) use_ = ZeroCopy::kOff;
      // The kernel counts sends from 0 in 32 bits. Neither number is 2^32 or more ahead of released_.
      const auto ticket = [this](std::uint32_t number) {
        return released_ + 1 + (number - static_cast<std::uint32_t>(released_));
      };
      release(ticket(error.ee_info), ticket(error.ee_data));
    }
  }
}

void ZeroCopySends::release(std::uint64_t first, std::uint64_t last) {
  // TCP acknowledges in order, so there is rarely more than one range.
  if (first <= released_ + 1)
    released_ = std::max(released_, last);
  else
    early_.emplace_back(first, last);
  const auto next = [this](const auto& range) { return range.first <= released_ + 1; };
  for (auto at = std::ranges::find_if(early_, next); at != early_.end();
       at = std::ranges::find_if(early_, next)) {
    released_ = std::max(released_, at->second);
    early_.erase(at);
  }
}

}  // namespace hips::tcp
