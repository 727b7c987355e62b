#include "lib/comm/setup/nic_info.hpp"

#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace hips::comm {
namespace {

constexpr double kBytesPerMegabit = 1e6 / 8;

/// Calls visit(socket) with a socket for questions about interfaces.
template <typename Visit>
auto ask(Visit&& visit) -> decltype(visit(0)) {
  const int asking = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (asking < 0) return {};
  auto answer = visit(asking);
  (void)close(asking);
  return answer;
}

}  // namespace

double interface_bandwidth(const std::string& interface) {
  return ask([&](int asking) -> double {
    ethtool_cmd settings{};
    settings.cmd = ETHTOOL_GSET;
    ifreq request{};
    std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&settings);
    if (ioctl(asking, SIOCETHTOOL, &request) != 0) return 0;
    const std::uint32_t megabits = ethtool_cmd_speed(&settings);
    const bool known = megabits != 0 && megabits != UINT16_MAX && megabits != UINT32_MAX;
    return known ? megabits * kBytesPerMegabit : 0;
  });
}

NicInfo nic_info(const LocalNetwork& network, bool chosen) {
  NicInfo nic;
  nic.name = nic.device = network.interface;
  nic.address = host_of(network.address);
  nic.subnet = network.loopback ? std::string() : subnet_of(network);
  nic.bandwidth_bytes_per_s = interface_bandwidth(network.interface);
  nic.mtu = ask([&](int asking) -> std::int32_t {
    ifreq request{};
    std::strncpy(request.ifr_name, network.interface.c_str(), IFNAMSIZ - 1);
    return ioctl(asking, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
  });
  nic.named_by_node = !chosen && is_named(network);
  const std::string below = ask([&](int asking) -> std::string {
    vlan_ioctl_args vlan{};
    vlan.cmd = GET_VLAN_REALDEV_NAME_CMD;
    std::strncpy(vlan.device1, network.interface.c_str(), sizeof vlan.device1 - 1);
    return ioctl(asking, SIOCGIFVLAN, &vlan) == 0 ? std::string(vlan.u.device2) : std::string();
  });
  if (!below.empty()) nic.device = below;
  return nic;
}

}  // namespace hips::comm
