#include "tools/hips-ps-perf/ping_pong.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "lib/base/os/unique_fd.hpp"

namespace hips::ps_perf {
namespace {

constexpr std::size_t kMostAddresses = 16;
constexpr int kAcceptMs = 2000;

/// Where a rank listens; addresses in network byte order, 0 beyond the last.
struct Listening {
  std::array<std::uint32_t, kMostAddresses> addresses{};
  std::uint32_t port = 0;
};

sockaddr_in address_of(std::uint32_t host, std::uint32_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = host;
  address.sin_port = static_cast<in_port_t>(port);
  return address;
}

/// Listens on any port of all interfaces.
UniqueFd listen_anywhere(Listening& where) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = address_of(INADDR_ANY, 0);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), any, length) != 0 || listen(fd.get(), 1) != 0 ||
      getsockname(fd.get(), any, &length) != 0)
    return {};
  where.port = address.sin_port;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  std::size_t num = 0;
  // Loopback last: it leads elsewhere from another node.
  for (const bool loopback : {false, true})
    for (const ifaddrs* one = list; one != nullptr && num < kMostAddresses; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
      const std::uint32_t host = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
      if ((ntohl(host) >> 24U == 127) == loopback) where.addresses[num++] = host;
    }
  freeifaddrs(list);
  return fd;
}

UniqueFd connect_to(const Listening& where) {
  for (const std::uint32_t host : where.addresses) {
    if (host == 0) break;
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{1, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const sockaddr_in address = address_of(host, where.port);
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  }
  return {};
}

bool exchange(int fd, bool first) {
  std::array<char, 8> bytes{};
  const auto send_all = [&] { return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t{8}; };
  const auto receive_all = [&] { return recv(fd, bytes.data(), bytes.size(), MSG_WAITALL) == ssize_t{8}; };
  return first ? send_all() && receive_all() : receive_all() && send_all();
}

}  // namespace

std::optional<double> ping_pong_us(Communicator& comm, int peer, int iterations) {
  Listening mine;
  UniqueFd listener;
  if (comm.rank() == peer) listener = listen_anywhere(mine);
  std::vector<std::uint32_t> told(kMostAddresses + 1);
  std::copy(mine.addresses.begin(), mine.addresses.end(), told.begin());
  told.back() = mine.port;
  comm.bcast(told, peer);
  UniqueFd fd;
  if (comm.rank() == 0) {
    Listening there{.port = told.back()};
    std::copy_n(told.begin(), kMostAddresses, there.addresses.begin());
    fd = connect_to(there);
  } else if (listener.valid()) {
    pollfd waits{listener.get(), POLLIN, 0};
    if (poll(&waits, 1, kAcceptMs) == 1) fd.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  std::optional<double> median;
  if (fd.valid()) {
    const int on = 1;
    const timeval limit{5, 0};
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::vector<double> times;
    for (int i = 0; i < iterations; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      if (!exchange(fd.get(), comm.rank() == 0)) break;
      times.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    if (!times.empty()) {
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                       times.end());
      median = times[times.size() / 2];
    }
  }
  comm.barrier();
  return median;
}

}  // namespace hips::ps_perf
