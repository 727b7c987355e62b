#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

#include "tools/doctor/judge.hpp"

namespace hips::doctor {
namespace {

/// RoCE uses the largest of 256, 512, ..., 4096 bytes that fits into an Ethernet frame together with its
/// headers.
constexpr std::int64_t kMtuFor4096 = 4200;

std::string port_name(const Device& device, const DevicePort& port) {
  return fmt::format("{}:{}", device.name, port.number);
}

/// The interface for the command that makes a software device.
std::string interface_to_use(const NodeFacts& node) {
  const auto up = std::find_if(node.interfaces.begin(), node.interfaces.end(),
                               [](const Interface& one) { return one.up; });
  return up != node.interfaces.end() ? up->name
         : node.interfaces.empty()   ? "IF"
                                     : node.interfaces.front().name;
}

void judge_no_device(const NodeFacts& node, const Config& config, Findings& findings) {
  if (!node.built_with_verbs) {
    findings.push_back(
        {config.transport == "verbs" ? FindingLevel::kError : FindingLevel::kWarning, "build",
         "this HiPS is built without verbs: ranks of one node use shared memory, ranks of different nodes "
         "TCP",
         "sudo apt-get install libibverbs-dev librdmacm-dev && meson setup --reconfigure build "
         "-Dverbs=enabled && ninja -C build"});
  }
  if (!node.devices.empty()) return;
  findings.push_back(
      {config.transport == "verbs" ? FindingLevel::kError : FindingLevel::kWarning, "devices",
       "no RDMA device: ranks of this node use shared memory, ranks of different nodes TCP",
       fmt::format("load the NIC's driver (modprobe mlx5_ib), or make a software device: modprobe "
                   "rdma_rxe && rdma link add rxe0 type rxe netdev {}",
                   interface_to_use(node))});
}

void judge_down(const Device& device, const DevicePort& port, bool wanted, Findings& findings) {
  const std::string fix =
      port.roce() ? fmt::format("ip link set {} up; if it stays down, check the cable: ethtool {}",
                                interface_of(port), interface_of(port))
                  : "check the cable and the subnet manager: ibstat; systemctl start opensm";
  findings.push_back({wanted ? FindingLevel::kError : FindingLevel::kWarning, port_name(device, port),
                      fmt::format("the port is {} ({}){}", port.state, port.phys_state,
                                  wanted ? ", but HIPS_IB_HCA names it" : "; HiPS does not use it"),
                      fix});
}

void judge_mtu(const Device& device, const DevicePort& port, Findings& findings) {
  if (!port.roce() || device.iwarp || !port.netdev.mtu || *port.netdev.mtu >= kMtuFor4096) return;
  const std::string roce = port.mtu > 0 ? fmt::format("RoCE packets have {} bytes instead of 4096", port.mtu)
                                        : "RoCE packets are smaller than 4096 bytes";
  findings.push_back({FindingLevel::kWarning, port_name(device, port),
                      fmt::format("{} has MTU {}: {}", interface_of(port), *port.netdev.mtu, roce),
                      fmt::format("ip link set {} mtu 9000 on all nodes, and jumbo frames at the switches",
                                  interface_of(port))});
}

void judge_address(const DevicePort& port, const PortUse& use, Findings& findings) {
  if (!use.gid) return;
  const verbs::Gid& gid = use.gid->gid;
  const bool roce = gid.kind == verbs::Gid::Kind::kRoceV1 || gid.kind == verbs::Gid::Kind::kRoceV2;
  if (!roce) return;
  if (gid.kind == verbs::Gid::Kind::kRoceV1) {
    const bool has_v2 = std::any_of(port.gids.begin(), port.gids.end(), [](const verbs::Gid& one) {
      return one.kind == verbs::Gid::Kind::kRoceV2;
    });
    findings.push_back({FindingLevel::kWarning, use.name,
                        fmt::format("{} can be neither routed nor marked by ECN", gid.to_string()),
                        has_v2 ? "unset HIPS_IB_GID_INDEX"
                               : fmt::format("cma_roce_mode -d {} -p {} -m 2", use.device, use.port)});
  }
  if (!gid.is_ipv4() && gid.is_link_local()) {
    const bool has_ipv4 =
        std::any_of(port.gids.begin(), port.gids.end(), [](const verbs::Gid& one) { return one.is_ipv4(); });
    findings.push_back(
        {FindingLevel::kWarning, use.name,
         fmt::format("{} is link-local and reaches only nodes of the same switch", gid.to_string()),
         has_ipv4 ? "unset HIPS_IB_GID_INDEX"
                  : fmt::format("ip addr add 10.0.0.1/24 dev {}, with another address on each node",
                                interface_of(port))});
  }
}

/// `is_any_used`: HiPS uses some port. A name in HIPS_IB_HCA is also the beginning of other names.
void judge_port(const Device& device, const DevicePort& port, const PortUse& use, const Config& config,
                bool is_any_used, Findings& findings) {
  const bool excluded = use.rails.empty() && use.why_not.find("HIPS_IB_HCA") != std::string::npos &&
                        use.why_not.find("excludes it") != std::string::npos;
  if (excluded) {
    findings.push_back({FindingLevel::kNote, use.name, use.why_not, ""});
    return;
  }
  if (!port.active()) {
    const bool named = !config.rdma.hca.empty() && config.rdma.hca.front() != '^';
    judge_down(device, port, named && !is_any_used, findings);
    return;
  }
  if (!use.gid) {
    const bool index_wrong = config.rdma.gid_index >= 0 && !port.gids.empty();
    std::string there;
    for (const verbs::Gid& gid : port.gids) there += (there.empty() ? ", but " : ", ") + gid.to_string();
    findings.push_back({FindingLevel::kError, use.name, use.why_not + there,
                        index_wrong ? "unset HIPS_IB_GID_INDEX, so that HiPS selects the best one"
                                    : fmt::format("ip addr add 10.0.0.1/24 dev {} && ip link set {} up",
                                                  interface_of(port), interface_of(port))});
    return;
  }
  const std::size_t before = findings.size();
  judge_mtu(device, port, findings);
  judge_address(port, use, findings);
  if (port.netdev.driver == "dummy")
    findings.push_back({FindingLevel::kNote, use.name,
                        fmt::format("{} is a dummy interface and reaches no other node", port.netdev.name),
                        ""});
  if (findings.size() == before)
    findings.push_back({FindingLevel::kOk, use.name,
                        fmt::format("active, {} ({}){}", use.gid->gid.to_string(), use.gid->reason,
                                    port.mtu > 0 ? fmt::format(", MTU {}", port.mtu) : std::string()),
                        ""});
}

void judge_software(const NodeFacts& node, Findings& findings) {
  std::string names;
  int count = 0;
  for (const Device& device : node.devices) {
    if (device.driver != "rdma_rxe") continue;
    names += (names.empty() ? "" : ", ") + device.name;
    ++count;
  }
  if (count == 0) return;
  findings.push_back({FindingLevel::kNote, names,
                      "soft-RoCE: the CPU does all the work; use it for tests, not for speed", ""});
  if (count > 1)
    findings.push_back(
        {FindingLevel::kNote, names,
         "two soft-RoCE devices of one node do not reach each other; each reaches itself and those of other "
         "nodes",
         ""});
}

void judge_near(const NodeFacts& node, const Device& device, const std::string& name, Findings& findings) {
  if (device.local_cpus.empty() || node.limits.cpus.empty() ||
      share_cpus(device.local_cpus, node.limits.cpus))
    return;
  findings.push_back(
      {FindingLevel::kWarning, name,
       fmt::format("this process runs on CPUs {}, but the NIC is local to {} (NUMA node {})",
                   node.limits.cpus, device.local_cpus, device.numa_node),
       fmt::format("mpirun --map-by numa, or numactl --cpunodebind={}", std::max(0, device.numa_node))});
}

}  // namespace

std::string interface_of(const DevicePort& port) {
  return port.netdev.name.empty() ? "IF" : port.netdev.name;
}

Findings judge_devices(const NodeFacts& node, const Config& config, const RailChoice& rails) {
  Findings findings;
  judge_no_device(node, config, findings);
  std::set<std::string> problems;
  for (const Device& device : node.devices) {
    if (device.problem.empty()) continue;
    // One cause may concern all devices.
    if (problems.insert(device.problem).second)
      findings.push_back(
          {FindingLevel::kError, "devices", device.problem,
           "modprobe ib_uverbs; apt-get install ibverbs-providers; chmod 666 /dev/infiniband/uverbs*"});
  }
  for (const Device& device : node.devices) {
    if (!device.problem.empty()) continue;
    for (const DevicePort& port : device.ports) {
      const std::string name = port_name(device, port);
      const auto use = std::find_if(rails.ports.begin(), rails.ports.end(),
                                    [&](const PortUse& one) { return one.name == name; });
      if (use == rails.ports.end()) continue;
      judge_port(device, port, *use, config, !rails.by_rail.empty(), findings);
      if (!use->rails.empty()) judge_near(node, device, name, findings);
    }
  }
  if (rails.by_rail.empty() && !rails.problem.ok() && !any_error(findings)) {
    const bool hca = rails.problem.message.find("HIPS_IB_HCA") != std::string::npos;
    findings.push_back(
        {FindingLevel::kError, "devices", rails.problem.message,
         hca ? "unset HIPS_IB_HCA, or name existing ports" : "bring an interface up: ip link set IF up"});
  }
  judge_software(node, findings);
  // RDMA that nobody asks for is in no one's way.
  if (config.transport == "tcp" || config.transport == "shm")
    for (DoctorFinding& finding : findings)
      if (finding.level == FindingLevel::kError) finding.level = FindingLevel::kNote;
  return findings;
}

std::string transports_text(const NodeFacts& node, const Config& config, const RailChoice& rails) {
  std::string names;
  for (const std::size_t at : rails.by_rail) names += (names.empty() ? "" : ", ") + rails.ports[at].name;
  const bool verbs =
      !names.empty() && rails.problem.ok() && node.built_with_verbs && config.transport != "shm";
  const std::string between = verbs                       ? fmt::format("verbs ({}) between nodes", names)
                              : config.transport == "shm" ? "nothing between nodes"
                                                          : "tcp between nodes";
  if (config.transport == "tcp") return "tcp for all ranks";
  if (config.transport == "verbs") return verbs ? fmt::format("verbs ({}) for all ranks", names) : "none";
  return "shm inside a node, " + between;
}

}  // namespace hips::doctor
