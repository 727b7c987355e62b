#include "tools/lab/guest_setup.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/lab/guest.hpp"
#include "tools/lab/network.hpp"

namespace hips::lab {
namespace {

/// A word for the shell, whatever is in it.
std::string shell_word(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

/// The link-local IPv6 address that the kernel makes of a MAC address.
std::string link_local(const std::string& mac) {
  const auto byte = [&](std::size_t i) { return std::stoul(mac.substr(3 * i, 2), nullptr, 16); };
  return fmt::format("fe80::{:x}:{:x}:{:x}:{:x}", (byte(0) ^ 2) << 8 | byte(1), byte(2) << 8 | 0xff,
                     0xfe00 | byte(3), byte(4) << 8 | byte(5));
}

/// Name, hosts, loopback and the host's folders.
std::string common_script(const GuestSetup& setup, const Wiring& wiring, std::int64_t server) {
  std::string hosts = "127.0.0.1 localhost\n";
  std::string slots;
  for (std::int64_t i = 0; i < setup.num_guests; ++i) {
    hosts += fmt::format("{} node{}\n", setup.num_guests == 1 ? "127.0.0.1" : management_ip(i), i);
    slots += fmt::format("node{} slots={}\n", i, setup.slots);
  }
  for (const Port& port : wiring.ports)
    hosts += fmt::format("{} node{}-nic{}\n", port.ip, port.server, port.rail);
  std::string script = fmt::format(
      "set -eu\necho node{} >/proc/sys/kernel/hostname\nrm -f /etc/hosts\nprintf '%s' {} >/etc/hosts\n"
      "printf '%s' {} >{}\nip link set lo up\n",
      server, shell_word(hosts), shell_word(slots), kHostFile);
  for (std::size_t i = 0; i < setup.writable.size(); ++i) {
    const std::string folder = shell_word(setup.writable[i]);
    script += fmt::format(
        "mkdir -p {}\nmount -t 9p -o trans=virtio,version=9p2000.L,rw,msize=1048576,cache=mmap {} {}\n",
        folder, writable_tag(i), folder);
  }
  return script;
}

/// What `ip` and `rdma` have to do for a rail. They are started once for all rails: under emulation starting
/// a program takes longer than what it does.
struct RailCommands {
  std::string ip, rdma;

  void add(Rail rail, const std::string& address) {
    ip += fmt::format("addr add {}/24 dev nic{}\nlink set nic{} mtu {} up\n", address, rail, rail, kRailMtu);
    rdma += fmt::format("link add rxe{} type rxe netdev nic{}\n", rail, rail);
  }
};

}  // namespace

std::string guest_script(const GuestSetup& setup, const Wiring& wiring, const Shaping& shaping,
                         std::int64_t server) {
  RailCommands commands;
  commands.ip = fmt::format("addr add {}/16 dev mgmt0\nlink set mgmt0 up\n", management_ip(server));
  std::string names, shaped;
  for (const Port& port : wiring.ports_of(server)) {
    names += fmt::format("    {}) name=nic{} ;;\n", port.mac, port.rail);
    commands.add(port.rail, port.ip);
    shaped += shaping_commands(shaping, fmt::format("nic{}", port.rail), true);
    if (!wiring.fixed[static_cast<std::size_t>(port.segment)]) continue;
    // Switches of fixed tables flood nothing, so nobody can ask who has an address.
    for (const Port& other : wiring.ports) {
      if (other.segment != port.segment || other.server == server) continue;
      for (const std::string& address : {other.ip, link_local(other.mac)}) {
        commands.ip +=
            fmt::format("neigh add {} lladdr {} nud permanent dev nic{}\n", address, other.mac, port.rail);
      }
    }
  }
  std::string script = common_script(setup, wiring, server);
  // A server answers for an address only on the NIC that has it: each rail is a network of its own.
  script +=
      "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore\necho 2 >/proc/sys/net/ipv4/conf/all/arp_announce\n";
  // The kernel counts interfaces as it finds them; we go by their MAC addresses.
  script += fmt::format(R"({{
for path in /sys/class/net/eth*; do
  read -r mac <"$path/address"
  case $mac in
{}    {}) name=mgmt0 ;;
    *) continue ;;
  esac
  echo "link set ${{path##*/}} name $name"
done
cat <<'END'
{}END
}} | ip -batch -
rdma -b - <<'END'
{}END
)",
                        names, management_mac(server), commands.ip, commands.rdma);
  if (!shaped.empty()) script += fmt::format("tc -batch - <<'END'\n{}END\n", shaped);
  return script;
}

std::string one_guest_script(const GuestSetup& setup, std::int64_t num_devices) {
  RailCommands commands;
  for (std::int64_t device = 0; device < num_devices; ++device) {
    commands.ip += fmt::format("link add nic{} type dummy\n", device);
    commands.add(static_cast<Rail>(device), fmt::format("10.100.{}.1", device));
  }
  return fmt::format("{}ip -batch - <<'END'\n{}END\nrdma -b - <<'END'\n{}END\n", common_script(setup, {}, 0),
                     commands.ip, commands.rdma);
}

std::string device_list(const std::vector<std::int64_t>& devices, const std::string& prefix) {
  std::string list;
  for (const std::int64_t device : devices) {
    list += fmt::format("{}{}{}:1", list.empty() ? "" : ",", prefix, device);
  }
  const auto last = std::max_element(devices.begin(), devices.end());
  return (last != devices.end() && *last > 9 ? "=" : "") + list;
}

}  // namespace hips::lab
