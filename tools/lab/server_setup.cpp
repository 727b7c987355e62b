#include "tools/lab/server_setup.hpp"

#include <algorithm>
#include <deque>
#include <string_view>

#include <fmt/format.h>

#include "tools/lab/guest/guest.hpp"
#include "tools/lab/network/network.hpp"

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

/// /etc/hosts.
std::string host_names(const ServerSetup& setup, const Wiring& wiring) {
  std::string hosts = "127.0.0.1 localhost\n";
  for (std::int64_t i = 0; i < setup.num_guests; ++i) {
    hosts += fmt::format("{} node{}\n", setup.num_guests == 1 ? "127.0.0.1" : management_ip(i), i);
  }
  for (const Port& port : wiring.ports)
    hosts += fmt::format("{} node{}-nic{}\n", port.ip, port.server, port.rail);
  return hosts;
}

/// A line for each server: its name, `between`, the number of ranks.
std::string host_file(const ServerSetup& setup, std::string_view between) {
  std::string lines;
  for (std::int64_t i = 0; i < setup.num_guests; ++i)
    lines += fmt::format("node{}{}{}\n", i, between, setup.slots);
  return lines;
}

/// A server answers for an address only on the NIC that has it: each rail is a network of its own.
constexpr std::string_view kAnswerForOwnAddresses =
    "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore\necho 2 >/proc/sys/net/ipv4/conf/all/arp_announce\n";

/// Programs of administrators are in folders that a user's PATH may lack.
constexpr std::string_view kBegin = "set -eu\nPATH=$PATH:/usr/sbin:/sbin\n";

/// Switches of fixed tables flood nothing, so nobody can ask who has an address.
std::string known_neighbours(const Wiring& wiring, const Port& port) {
  std::string commands;
  if (!wiring.fixed[static_cast<std::size_t>(port.segment)]) return commands;
  for (const Port& other : wiring.ports) {
    if (other.segment != port.segment || other.server == port.server) continue;
    for (const std::string& address : {other.ip, link_local(other.mac)}) {
      commands +=
          fmt::format("neigh add {} lladdr {} nud permanent dev nic{}\n", address, other.mac, port.rail);
    }
  }
  return commands;
}

/// `ip` commands for the routes of a server to the addresses that none of its NICs reaches: from server to server, the
/// shortest way, over the NIC of the address's own number where that is one.
std::string routes(const Wiring& wiring, std::int64_t num_servers, std::int64_t server) {
  const auto idx = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::vector<std::vector<const Port*>> in_segment(wiring.fixed.size()), of_server(idx(num_servers));
  for (const Port& port : wiring.ports) {
    in_segment[idx(port.segment)].push_back(&port);
    of_server[idx(port.server)].push_back(&port);
  }
  // Ports of neighbours that are the first of a shortest way to each server, and the NICs that lead there.
  struct Way {
    const Port *from, *to;
  };
  std::vector<std::int64_t> distance(idx(num_servers), -1);
  std::vector<std::vector<Way>> ways(idx(num_servers));
  std::deque<std::int64_t> queue{server};
  distance[idx(server)] = 0;
  while (!queue.empty()) {
    const std::int64_t at = queue.front();
    queue.pop_front();
    for (const Port* from : of_server[idx(at)]) {
      for (const Port* to : in_segment[idx(from->segment)]) {
        std::int64_t& there = distance[idx(to->server)];
        if (there < 0) {
          there = distance[idx(at)] + 1;
          queue.push_back(to->server);
        }
        if (there != distance[idx(at)] + 1) continue;
        auto& found = ways[idx(to->server)];
        const std::vector<Way> first{{from, to}};
        for (const Way& way : at == server ? first : ways[idx(at)]) {
          const auto is_known = [&](const Way& other) {
            return other.from == way.from && other.to == way.to;
          };
          if (std::none_of(found.begin(), found.end(), is_known)) found.push_back(way);
        }
      }
    }
  }
  std::string commands;
  for (const Port& port : wiring.ports) {
    const auto& found = ways[idx(port.server)];
    const auto is_own = [&](const Port* own) { return own->segment == port.segment; };
    const auto& own = of_server[idx(server)];
    if (found.empty() || std::any_of(own.begin(), own.end(), is_own)) continue;
    auto way = std::find_if(found.begin(), found.end(),
                            [&](const Way& each) { return each.from->rail == port.rail; });
    if (way == found.end()) way = found.begin();
    commands += fmt::format("route add {} via {} dev nic{}\n", port.ip, way->to->ip, way->from->rail);
  }
  return commands;
}

/// Name, hosts, loopback and the host's folders.
std::string common_script(const ServerSetup& setup, const Wiring& wiring, std::int64_t server) {
  std::string script = fmt::format(
      "{}echo node{} >/proc/sys/kernel/hostname\nrm -f /etc/hosts\nprintf '%s' {} >/etc/hosts\n"
      "printf '%s' {} >{}\nip link set lo up\n",
      kBegin, server, shell_word(host_names(setup, wiring)), shell_word(host_file(setup, " slots=")),
      kHostFile);
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

std::string guest_script(const ServerSetup& setup, const Wiring& wiring, const Shaping& shaping,
                         std::int64_t server) {
  RailCommands commands;
  commands.ip = fmt::format("addr add {}/16 dev mgmt0\nlink set mgmt0 up\n", management_ip(server));
  std::string names, shaped;
  for (const Port& port : wiring.ports_of(server)) {
    names += fmt::format("    {}) name=nic{} ;;\n", port.mac, port.rail);
    commands.add(port.rail, port.ip);
    shaped += shaping_commands(shaping, fmt::format("nic{}", port.rail), true);
    commands.ip += known_neighbours(wiring, port);
  }
  std::string script = common_script(setup, wiring, server);
  script += kAnswerForOwnAddresses;
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

std::string namespace_script(const ServerSetup& setup, const Wiring& wiring, const Shaping& shaping,
                             std::int64_t server, const std::string& self) {
  std::string ip =
      fmt::format("link set lo up\naddr add {}/16 dev mgmt0\nlink set mgmt0 up\n", management_ip(server));
  std::string tc;
  for (const Port& port : wiring.ports_of(server)) {
    const std::string nic = fmt::format("nic{}", port.rail);
    ip += fmt::format("addr add {}/24 dev {}\nlink set {} up\n", port.ip, nic, nic);
    ip += known_neighbours(wiring, port);
    tc += shaping_commands(shaping, nic, true);
  }
  ip += routes(wiring, setup.num_guests, server);
  std::string script = fmt::format("{}printf '%s' {} >{}\nprintf '%s' {} >{}\n", kBegin,
                                   shell_word(host_file(setup, " slots=")), kServerHostFile,
                                   shell_word(host_file(setup, ":")), kServerHydraFile);
  script += fmt::format("printf '%s' {} >{}/hosts\nmount --bind {}/hosts /etc/hosts\n",
                        shell_word(host_names(setup, wiring)), kServerFolder, kServerFolder);
  script += fmt::format("printf '#!/bin/sh\\nexec %s lab rsh \"$@\"\\n' {} >{}\nchmod 755 {}\n",
                        shell_word(shell_word(self)), kServerShell, kServerShell);
  script += kAnswerForOwnAddresses;
  // Ways there and back differ where a packet passes several servers. The kernel takes the larger value of "all" and of the
  // interface.
  script +=
      "echo 1 >/proc/sys/net/ipv4/ip_forward\n"
      "for filter in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >\"$filter\"; done\n";
  script += fmt::format("ip -batch - <<'END'\n{}END\n", ip);
  if (!tc.empty()) script += fmt::format("tc -batch - <<'END'\n{}END\n", tc);
  return script;
}

std::string one_guest_script(const ServerSetup& setup, std::int64_t num_devices) {
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
