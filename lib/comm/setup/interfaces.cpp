#include "lib/comm/setup/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace hips::comm {
namespace {

/// The bytes of the IP address, without family and port.
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

}  // namespace

bool is_named(const LocalNetwork& network) {
  static const std::vector<SocketAddress>* const named = [] {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    auto addresses = name[0] == '\0' ? std::vector<SocketAddress>()
                                     : resolve(name, 0).value_or(std::vector<SocketAddress>());
    return new std::vector<SocketAddress>(std::move(addresses));
  }();
  return std::any_of(named->begin(), named->end(), [&](const SocketAddress& address) {
    return std::ranges::equal(bytes_of(address.get()), bytes_of(network.address.get()));
  });
}

namespace {

/// The addresses of all interfaces that are up, except link-local ones; IPv4 first.
Result<std::vector<LocalNetwork>> all_networks() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(Code::kSystem, "cannot list the network interfaces");
  std::vector<LocalNetwork> networks;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      if ((entry->ifa_flags & IFF_UP) == 0 || is_link_local(entry->ifa_addr)) continue;
      LocalNetwork network;
      network.interface = entry->ifa_name;
      network.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
      network.address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      std::memcpy(&network.address.storage, entry->ifa_addr, network.address.length);
      if (entry->ifa_netmask != nullptr)
        for (const unsigned char byte : bytes_of(entry->ifa_netmask))
          network.prefix_bits += static_cast<std::uint32_t>(std::popcount(byte));
      networks.push_back(network);
    }
  }
  freeifaddrs(list);
  return networks;
}

/// Bridges that exist on every node with the same address. NCCL skips the same ones by default.
bool is_virtual(const LocalNetwork& network) {
  return network.interface.starts_with("docker") || network.interface.starts_with("virbr");
}

}  // namespace

Result<std::vector<LocalNetwork>> local_networks() {
  auto networks = all_networks();
  if (!networks) return networks;
  std::erase_if(*networks, [](const LocalNetwork& network) { return network.loopback; });
  if (networks->empty()) return fail(Code::kSystem, "this node has no network address except loopback");
  std::stable_partition(networks->begin(), networks->end(), is_named);
  return networks;
}

std::vector<LocalNetwork> choose_data_networks(const std::vector<LocalNetwork>& all,
                                               const DeviceFilter& filter) {
  std::vector<std::pair<std::int32_t, LocalNetwork>> chosen;
  std::set<std::string_view> seen;
  for (const LocalNetwork& network : all) {
    if (!seen.insert(network.interface).second) continue;
    for (const std::int32_t place : filter.positions_of(network.interface))
      chosen.emplace_back(place, network);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto drop_unless_all = [&](auto unwanted) {
    const auto is_unwanted = [&](const auto& one) { return unwanted(one.second); };
    if (!std::all_of(chosen.begin(), chosen.end(), is_unwanted)) std::erase_if(chosen, is_unwanted);
  };
  if (!filter.chooses()) drop_unless_all([](const LocalNetwork& network) { return network.loopback; });
  if (filter.empty()) drop_unless_all(is_virtual);
  std::vector<LocalNetwork> networks;
  for (auto& [place, network] : chosen) networks.push_back(std::move(network));
  return networks;
}

Result<std::vector<LocalNetwork>> data_networks(const std::string& ifname) {
  DeviceFilter filter;
  if (!ifname.empty()) {
    auto parsed = DeviceFilter::parse(ifname, kSocketSyntax);
    if (!parsed) return fail(std::move(parsed).error());
    filter = *std::move(parsed);
  }
  auto all = all_networks();
  if (!all) return all;
  if (all->empty()) return fail(Code::kUnsupported, "this node has no network address");
  // Keep all addresses of an interface together, IPv4 first, so that equal nodes choose the same family.
  std::set<std::string> named;
  for (const LocalNetwork& network : *all)
    if (is_named(network)) named.insert(network.interface);
  std::stable_partition(all->begin(), all->end(),
                        [&](const LocalNetwork& network) { return !named.contains(network.interface); });
  auto chosen = choose_data_networks(*all, filter);
  if (!chosen.empty()) return chosen;
  std::set<std::string_view> names;
  for (const LocalNetwork& network : *all) names.insert(network.interface);
  return fail(Code::kInvalidArgument,
              fmt::format("HIPS_SOCKET_IFNAME=\"{}\" matches no interface; this node has {}", ifname,
                          fmt::join(names, ", ")));
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

std::string subnet_of(const LocalNetwork& network) {
  SocketAddress subnet = network.address;
  const auto bytes = bytes_of(subnet.get());
  auto* const to = const_cast<unsigned char*>(bytes.data());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto kept =
        std::clamp<std::int64_t>(std::int64_t{network.prefix_bits} - 8 * static_cast<std::int64_t>(i), 0, 8);
    to[i] = static_cast<unsigned char>(to[i] & (0xff00U >> static_cast<unsigned>(kept)));
  }
  return fmt::format("{}/{}", host_of(subnet), network.prefix_bits);
}

std::string host_of(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.storage.ss_family, bytes_of(address.get()).data(), text, sizeof text);
  return text;
}

}  // namespace hips::comm
