#include "tools/discover/packets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace hips::discover {
namespace {

/// The initial TTL of every packet; each router decrements it.
constexpr int kFirstTtl = 64;

std::optional<SocketAddress> numeric(const std::string& text, std::uint16_t port) {
  SocketAddress address;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof *v4;
    return address;
  }
  if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof *v6;
    return address;
  }
  return std::nullopt;
}

void set_option(int fd, int level, int name, int value) {
  (void)setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

Result<PacketSocket> PacketSocket::open(const std::string& address, const std::string& interface) {
  const auto local = numeric(address, 0);
  if (!local) return fail(Code::kSystem, "discover: invalid address " + address);
  PacketSocket made;
  const int family = local->storage.ss_family;
  made.fd_ = UniqueFd(socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made.fd_.valid()) return fail(socket_error(errno, "discover: cannot create a socket"));
  const int fd = made.fd_.get();
  // Otherwise the routing table selects the NIC. Kernels before 5.7 allow this only to root.
  if (!interface.empty()) {
    (void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                     static_cast<socklen_t>(interface.size() + 1));
    made.interface_idx_ = if_nametoindex(interface.c_str());
  }
  if (family == AF_INET) {
    set_option(fd, IPPROTO_IP, IP_TTL, kFirstTtl);
    set_option(fd, IPPROTO_IP, IP_RECVTTL, 1);
    set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
  } else {
    set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, kFirstTtl);
    set_option(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
    set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
  }
  // For packets of all servers at once.
  set_option(fd, SOL_SOCKET, SO_RCVBUF, 4 << 20);
  if (bind(fd, local->get(), local->length) != 0)
    return fail(socket_error(errno, "discover: cannot send from " + address));
  return made;
}

std::uint16_t PacketSocket::port() const {
  return port_of(local_address(fd_.get()));
}

void PacketSocket::send(const std::string& address, std::uint16_t port, const PacketLabel& label) const {
  const auto to = numeric(address, port);
  // An error is that of an earlier packet, or means that there is no route: then nothing arrives.
  if (to) (void)sendto(fd_.get(), &label, sizeof label, MSG_DONTWAIT | MSG_NOSIGNAL, to->get(), to->length);
}

std::optional<Arrival> PacketSocket::receive() const {
  constexpr int kMostForeign = 1024;
  for (int i = 0; i < kMostForeign; ++i) {
    Arrival arrival;
    iovec data{&arrival.label, sizeof arrival.label};
    alignas(cmsghdr) std::array<char, 256> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t bytes = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (bytes != static_cast<ssize_t>(sizeof arrival.label)) continue;
    int ttl = 0;
    unsigned arrived_at = 0;
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      const bool v4 = one->cmsg_level == IPPROTO_IP, v6 = one->cmsg_level == IPPROTO_IPV6;
      if ((v4 && one->cmsg_type == IP_TTL) || (v6 && one->cmsg_type == IPV6_HOPLIMIT))
        std::memcpy(&ttl, CMSG_DATA(one), sizeof ttl);
      if (v4 && one->cmsg_type == IP_PKTINFO) {
        in_pktinfo info{};
        std::memcpy(&info, CMSG_DATA(one), sizeof info);
        arrived_at = static_cast<unsigned>(info.ipi_ifindex);
      }
      if (v6 && one->cmsg_type == IPV6_PKTINFO) {
        in6_pktinfo info{};
        std::memcpy(&info, CMSG_DATA(one), sizeof info);
        arrived_at = info.ipi6_ifindex;
      }
    }
    if (interface_idx_ != 0 && arrived_at != 0 && arrived_at != interface_idx_) continue;
    arrival.hops = ttl > 0 && ttl <= kFirstTtl ? kFirstTtl - ttl + 1 : 0;
    return arrival;
  }
  return std::nullopt;
}

}  // namespace hips::discover
