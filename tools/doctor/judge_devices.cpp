#include <algorithm>

#include <fmt/format.h>

#include "tools/doctor/judge.hpp"

namespace hips::doctor {
namespace {

/// RoCE takes the largest of 256, 512, ..., 4096 bytes that fits an Ethernet frame together with its headers.
constexpr std::int64_t kMtuFor4096 = 4200;

std::string port_name(const Device& device, const Port& port) {
  return fmt::format("{}:{}", device.name, port.number);
}

/// The interface that a software device would be made on, for the line that makes one.
std::string interface_to_use(const Host& host) {
  const auto up = std::find_if(host.interfaces.begin(), host.interfaces.end(),
                               [](const Interface& one) { return one.up; });
  return up != host.interfaces.end() ? up->name
         : host.interfaces.empty()   ? "IF"
                                     : host.interfaces.front().name;
}

void judge_no_device(const Host& host, const Config& config, Findings& findings) {
  if (!host.built_with_verbs) {
    findings.push_back(
        {config.transport == "verbs" ? Level::kError : Level::kWarning, "build",
         "this HiPS is built without verbs: ranks of one host talk by shared memory, ranks of several "
         "hosts by TCP",
         "sudo apt-get install libibverbs-dev librdmacm-dev && meson setup --reconfigure build "
         "-Dverbs=enabled && ninja -C build"});
  }
  if (!host.devices.empty()) return;
  findings.push_back(
      {config.transport == "verbs" ? Level::kError : Level::kWarning, "devices",
       "there is no RDMA device: ranks of this host talk by shared memory, ranks of several hosts "
       "by TCP",
       fmt::format("load the NIC's driver (modprobe mlx5_ib), or make a software device: modprobe "
                   "rdma_rxe && rdma link add rxe0 type rxe netdev {}",
                   interface_to_use(host))});
}

void judge_down(const Device& device, const Port& port, bool wanted, Findings& findings) {
  const std::string fix =
      port.roce() ? fmt::format("ip link set {} up; if it stays down, look at the cable: ethtool {}",
                                interface_of(port), interface_of(port))
                  : "look at the cable and at the subnet manager: ibstat; systemctl start opensm";
  findings.push_back({wanted ? Level::kError : Level::kWarning, port_name(device, port),
                      fmt::format("the port is {} ({}){}", port.state, port.phys_state,
                                  wanted ? ", and HIPS_IB_HCA names it" : ", so HiPS does not use it"),
                      fix});
}

void judge_mtu(const Device& device, const Port& port, Findings& findings) {
  if (!port.roce() || device.iwarp || !port.netdev.mtu || *port.netdev.mtu >= kMtuFor4096) return;
  const std::string roce = port.mtu > 0
                               ? fmt::format("RoCE sends {} bytes in a packet instead of 4096", port.mtu)
                               : "RoCE packets are smaller than 4096 bytes";
  findings.push_back({Level::kWarning, port_name(device, port),
                      fmt::format("{} has MTU {}, so {}", interface_of(port), *port.netdev.mtu, roce),
                      fmt::format("ip link set {} mtu 9000, at all hosts, and jumbo frames at the switches",
                                  interface_of(port))});
}

void judge_address(const Port& port, const PortUse& use, Findings& findings) {
  if (!use.gid) return;
  const verbs::Gid& gid = use.gid->gid;
  const bool roce = gid.kind == verbs::Gid::Kind::kRoceV1 || gid.kind == verbs::Gid::Kind::kRoceV2;
  if (!roce) return;
  if (gid.kind == verbs::Gid::Kind::kRoceV1) {
    const bool has_v2 = std::any_of(port.gids.begin(), port.gids.end(), [](const verbs::Gid& one) {
      return one.kind == verbs::Gid::Kind::kRoceV2;
    });
    findings.push_back({Level::kWarning, use.name,
                        fmt::format("{} is not routed and cannot be marked by ECN", gid.to_string()),
                        has_v2 ? "unset HIPS_IB_GID_INDEX"
                               : fmt::format("cma_roce_mode -d {} -p {} -m 2", use.device, use.port)});
  }
  if (!gid.is_ipv4() && gid.is_link_local()) {
    const bool has_ipv4 =
        std::any_of(port.gids.begin(), port.gids.end(), [](const verbs::Gid& one) { return one.is_ipv4(); });
    findings.push_back(
        {Level::kWarning, use.name,
         fmt::format("{} is link-local, so it reaches hosts of its own switch only", gid.to_string()),
         has_ipv4 ? "unset HIPS_IB_GID_INDEX"
                  : fmt::format("ip addr add 10.0.0.1/24 dev {}, another address at each host",
                                interface_of(port))});
  }
}

void judge_port(const Device& device, const Port& port, const PortUse& use, const Config& config,
                Findings& findings) {
  const bool left_out = !port.active() ? false : use.rails.empty() && use.why_not.find("HIPS_IB_HCA") == 0;
  if (left_out) {
    findings.push_back({Level::kNote, use.name, use.why_not, ""});
    return;
  }
  if (!port.active()) {
    const bool named = !config.rdma.hca.empty() && config.rdma.hca.front() != '^' &&
                       use.why_not.find("leaves it out") == std::string::npos;
    judge_down(device, port, named, findings);
    return;
  }
  if (!use.gid) {
    const bool index_wrong = config.rdma.gid_index >= 0 && !port.gids.empty();
    std::string there;
    for (const verbs::Gid& gid : port.gids) there += (there.empty() ? ", but " : ", ") + gid.to_string();
    findings.push_back({Level::kError, use.name, use.why_not + there,
                        index_wrong ? "unset HIPS_IB_GID_INDEX, so that the best one is chosen"
                                    : fmt::format("ip addr add 10.0.0.1/24 dev {} && ip link set {} up",
                                                  interface_of(port), interface_of(port))});
    return;
  }
  const std::size_t before = findings.size();
  judge_mtu(device, port, findings);
  judge_address(port, use, findings);
  if (port.netdev.driver == "dummy")
    findings.push_back(
        {Level::kNote, use.name,
         fmt::format("{} is a dummy interface: no other host is reached over it", port.netdev.name), ""});
  if (findings.size() == before)
    findings.push_back({Level::kOk, use.name,
                        fmt::format("active, {} ({}){}", use.gid->gid.to_string(), use.gid->reason,
                                    port.mtu > 0 ? fmt::format(", MTU {}", port.mtu) : std::string()),
                        ""});
}

void judge_software(const Host& host, Findings& findings) {
  std::string names;
  int count = 0;
  for (const Device& device : host.devices) {
    if (device.driver != "rdma_rxe") continue;
    names += (names.empty() ? "" : ", ") + device.name;
    ++count;
  }
  if (count == 0) return;
  findings.push_back({Level::kNote, names,
                      "soft-RoCE: the CPU does all the work, so it is for trying out and not for speed", ""});
  if (count > 1)
    findings.push_back(
        {Level::kNote, names,
         "two soft-RoCE devices of one host do not reach each other; each reaches itself and those of "
         "other hosts",
         ""});
}

void judge_near(const Host& host, const Device& device, const std::string& name, Findings& findings) {
  if (device.local_cpus.empty() || host.limits.cpus.empty() ||
      share_cpus(device.local_cpus, host.limits.cpus))
    return;
  findings.push_back(
      {Level::kWarning, name,
       fmt::format("this process runs on CPUs {}, and the NIC is nearest to {} (NUMA node {})",
                   host.limits.cpus, device.local_cpus, device.numa_node),
       fmt::format("mpirun --map-by numa, or numactl --cpunodebind={}", std::max(0, device.numa_node))});
}

}  // namespace

std::string interface_of(const Port& port) {
  return port.netdev.name.empty() ? "IF" : port.netdev.name;
}

Findings judge_devices(const Host& host, const Config& config, const RailChoice& rails) {
  Findings findings;
  judge_no_device(host, config, findings);
  if (!host.device_problem.empty())
    findings.push_back(
        {Level::kError, "devices", host.device_problem,
         "modprobe ib_uverbs; apt-get install ibverbs-providers; chmod 666 /dev/infiniband/uverbs*"});
  for (const Device& device : host.devices) {
    for (const Port& port : device.ports) {
      const std::string name = port_name(device, port);
      const auto use = std::find_if(rails.ports.begin(), rails.ports.end(),
                                    [&](const PortUse& one) { return one.name == name; });
      if (use == rails.ports.end()) continue;
      judge_port(device, port, *use, config, findings);
      if (!use->rails.empty()) judge_near(host, device, name, findings);
    }
  }
  if (rails.by_rail.empty() && !rails.problem.ok() && !any_error(findings)) {
    const bool hca = rails.problem.message.find("HIPS_IB_HCA") != std::string::npos;
    findings.push_back({Level::kError, "devices", rails.problem.message,
                        hca ? "unset HIPS_IB_HCA, or name ports that there are"
                            : "bring an interface up: ip link set IF up"});
  }
  judge_software(host, findings);
  return findings;
}

std::string transports_text(const Host& host, const Config& config, const RailChoice& rails) {
  std::string names;
  for (const std::size_t at : rails.by_rail) names += (names.empty() ? "" : ", ") + rails.ports[at].name;
  const bool verbs =
      !names.empty() && rails.problem.ok() && host.built_with_verbs && config.transport != "shm";
  const std::string between = verbs                       ? fmt::format("verbs ({}) between hosts", names)
                              : config.transport == "shm" ? "nothing between hosts"
                                                          : "tcp between hosts";
  if (config.transport == "tcp") return "tcp for all ranks";
  if (config.transport == "verbs") return verbs ? fmt::format("verbs ({}) for all ranks", names) : "none";
  return "shm inside a host, " + between;
}

}  // namespace hips::doctor
