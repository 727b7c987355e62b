#include "lib/comm/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

namespace hips::comm {
namespace {

/// The bytes of the IP address alone.
std::span<const unsigned char> bytes_of(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return {reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr),
            4};
  if (address->sa_family == AF_INET6)
    return {
        reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr),
        16};
  return {};
}

bool equal_bits(std::span<const unsigned char> a, std::span<const unsigned char> b, std::uint32_t bits) {
  if (a.size() != b.size() || bits > 8 * a.size()) return false;
  const std::size_t whole = bits / 8;
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin())) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

bool is_link_local(const sockaddr* address) {
  const auto bytes = bytes_of(address);
  return bytes.size() == 4 ? bytes[0] == 169 && bytes[1] == 254
                           : bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

std::vector<SocketAddress> addresses_of_own_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  if (name[0] == '\0') return {};
  return resolve(name, 0).value_or(std::vector<SocketAddress>());
}

}  // namespace

Result<std::vector<LocalNetwork>> local_networks() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(Code::kSystem, "cannot list the network interfaces");
  std::vector<LocalNetwork> networks;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      if ((entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
      if (is_link_local(entry->ifa_addr)) continue;
      LocalNetwork network;
      network.address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      std::memcpy(&network.address.storage, entry->ifa_addr, network.address.length);
      if (entry->ifa_netmask != nullptr)
        for (const unsigned char byte : bytes_of(entry->ifa_netmask))
          network.prefix_bits += static_cast<std::uint32_t>(std::popcount(byte));
      networks.push_back(network);
    }
  }
  freeifaddrs(list);
  if (networks.empty()) return fail(Code::kSystem, "this host has no network address but loopback");
  const std::vector<SocketAddress> named = addresses_of_own_name();
  std::stable_partition(networks.begin(), networks.end(), [&](const LocalNetwork& network) {
    return std::any_of(named.begin(), named.end(), [&](const SocketAddress& address) {
      return std::ranges::equal(bytes_of(address.get()), bytes_of(network.address.get()));
    });
  });
  return networks;
}

std::vector<SocketAddress> by_reachability(std::vector<SocketAddress> addresses,
                                           const std::vector<LocalNetwork>& mine) {
  const auto distance = [&](const SocketAddress& address) {
    const auto bytes = bytes_of(address.get());
    int least = 1;
    for (const LocalNetwork& network : mine) {
      const auto own = bytes_of(network.address.get());
      if (std::ranges::equal(bytes, own)) return 2;
      if (equal_bits(bytes, own, network.prefix_bits)) least = 0;
    }
    return least;
  };
  std::stable_sort(addresses.begin(), addresses.end(),
                   [&](const SocketAddress& a, const SocketAddress& b) { return distance(a) < distance(b); });
  return addresses;
}

std::string host_of(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.storage.ss_family, bytes_of(address.get()).data(), text, sizeof text);
  return text;
}

}  // namespace hips::comm
