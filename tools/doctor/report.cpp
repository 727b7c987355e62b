#include "tools/doctor/report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/doctor/judge.hpp"

namespace hips::doctor {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

const PortUse* use_of(const RailChoice& rails, const Device& device, const DevicePort& port) {
  const auto use = std::find_if(rails.ports.begin(), rails.ports.end(), [&](const PortUse& one) {
    return one.device == device.name && one.port == port.number;
  });
  return use == rails.ports.end() ? nullptr : &*use;
}

std::string counters_text(const Counters& counters) {
  std::string text;
  for (const auto& [name, value] : counters)
    if (value > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string port_text(const Device& device, const DevicePort& port, const PortUse* use) {
  std::string text =
      fmt::format("    port {}  {}, {}, {}", port.number, port.state, port.link_layer, port.rate);
  if (port.mtu > 0) text += fmt::format(", MTU {}", port.mtu);
  if (!port.netdev.name.empty())
    text += fmt::format(", on {} ({}{})", port.netdev.name, port.netdev.state,
                        port.netdev.mtu ? fmt::format(", MTU {}", *port.netdev.mtu) : std::string());
  if (use != nullptr && !use->rails.empty()) {
    text += fmt::format("  <- rail {}", fmt::join(use->rails, ", "));
  } else if (use != nullptr && !use->why_not.empty()) {
    text += fmt::format("  (not used: {})", use->why_not);
  }
  text += '\n';
  for (const verbs::Gid& gid : port.gids) {
    const bool taken = use != nullptr && use->gid && use->gid->gid == gid;
    text += fmt::format(
        "      GID {}\n",
        taken ? fmt::format("{}  <- used: {}", gid.to_string(), use->gid->reason) : gid.to_string());
  }
  if (const std::string counters = counters_text(port.counters); !counters.empty())
    text += fmt::format("      counters of {}:{}: {}\n", device.name, port.number, counters);
  if (const std::string counters = counters_text(port.netdev.statistics); !counters.empty())
    text += fmt::format("      counters of {}: {}\n", port.netdev.name, counters);
  return text;
}

std::string device_text(const Device& device, const RailChoice& rails) {
  std::string text =
      fmt::format("  {}  {}", device.name, device.driver.empty() ? "unknown driver" : device.driver);
  if (!device.model.empty()) text += fmt::format(", {}", device.model);
  if (!device.firmware.empty()) text += fmt::format(", firmware {}", device.firmware);
  if (device.numa_node >= 0) text += fmt::format(", NUMA node {}", device.numa_node);
  text += '\n';
  for (const DevicePort& port : device.ports) text += port_text(device, port, use_of(rails, device, port));
  return text;
}

std::string limits_text(const ProcessLimits& limits) {
  std::string text =
      fmt::format("  locked memory {}{}\n",
                  limits.locked_bytes ? size_text(*limits.locked_bytes) : std::string("unlimited"),
                  limits.may_lock_all ? " (does not apply to this process: CAP_IPC_LOCK)" : "");
  text += fmt::format("  open files    {}\n",
                      limits.open_files ? std::to_string(*limits.open_files) : "unlimited");
  text +=
      fmt::format("  memory        {} MiB, {} free; /dev/shm {} MiB, {} free\n", limits.memory_bytes / kMiB,
                  limits.memory_free_bytes / kMiB, limits.shm_bytes / kMiB, limits.shm_free_bytes / kMiB);
  if (limits.huge_pages > 0)
    text += fmt::format("  huge pages    {} of {} KiB, {} free\n", limits.huge_pages,
                        limits.huge_page_bytes / 1024, limits.huge_pages_free);
  text +=
      fmt::format("  CPUs          {} of {} ({})\n", limits.num_cpus, limits.num_online_cpus, limits.cpus);
  return text;
}

}  // namespace

std::string node_text(const NodeFacts& node, const RailChoice& rails, const std::string& transports) {
  std::string text = fmt::format("HiPS {} on {}, {}\n\nRDMA devices\n", node.version, node.name, node.kernel);
  if (node.devices.empty()) text += "  none\n";
  for (const Device& device : node.devices) text += device_text(device, rails);
  text += "\nLimits\n" + limits_text(node.limits);
  text += fmt::format("\nTransports\n  {}\n", transports);
  return text;
}

std::string findings_text(Findings findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const DoctorFinding& a, const DoctorFinding& b) { return a.level > b.level; });
  std::string text = "Findings\n";
  std::size_t counts[4] = {};
  for (const DoctorFinding& finding : findings) {
    ++counts[static_cast<std::size_t>(finding.level)];
    text += fmt::format("  {:<8} {}: {}\n", to_string(finding.level), finding.where, finding.text);
    if (!finding.fix.empty()) text += fmt::format("           fix: {}\n", finding.fix);
  }
  const auto number = [](std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  return text + fmt::format("\n{}, {}, {}\n", number(counts[3], "error"), number(counts[2], "warning"),
                            number(counts[1], "note"));
}

}  // namespace hips::doctor
