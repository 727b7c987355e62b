#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>

#include <hips/hips.h>

#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "tools/doctor/ethtool.hpp"
#include "tools/doctor/file_tree.hpp"
#include "tools/doctor/node.hpp"
#ifdef HIPS_HAVE_VERBS
#include "transports/verbs/device.hpp"
#endif

namespace hips::doctor {
namespace {

/// Is this a counter of lost or paused packets? ethtool -S of a NIC prints hundreds of others for its queues.
bool is_congestion_counter(std::string_view name) {
  for (const std::string_view part :
       {"pause", "ecn", "cnp", "discard", "out_of_buffer", "rx_prio", "tx_prio"})
    if (name.find(part) != std::string_view::npos) return name.find("_bytes") == std::string_view::npos;
  return false;
}

#ifdef HIPS_HAVE_VERBS
void query_devices(NodeFacts& node) {
  auto contexts = verbs::open_devices();
  for (Device& device : node.devices) {
    if (!contexts) {
      device.problem = contexts.error().message;
      continue;
    }
    const auto context = std::find_if(contexts->begin(), contexts->end(), [&](const auto& one) {
      return device.name == ibv_get_device_name(one->device);
    });
    for (DevicePort& port : device.ports) {
      if (context == contexts->end()) continue;
      const auto facts = verbs::query_port(**context, static_cast<std::uint8_t>(port.number));
      if (facts) port.mtu = static_cast<std::int32_t>(verbs::mtu_bytes(facts->active_mtu));
    }
    if (context == contexts->end())
      device.problem = "verbs: cannot open " + device.name + "; check the permissions of /dev/infiniband";
  }
}
constexpr bool kBuiltWithVerbs = true;
#else
void query_devices(NodeFacts& /*node*/) {}
constexpr bool kBuiltWithVerbs = false;
#endif

}  // namespace

void query_machine(NodeFacts& node) {
  node.built_with_verbs = kBuiltWithVerbs;
  for (Device& device : node.devices)
    for (DevicePort& port : device.ports) {
      if (port.netdev.name.empty()) continue;
      for (const auto& [name, value] : ethtool_counters(port.netdev.name))
        if (is_congestion_counter(name)) port.netdev.statistics[name] = value;
    }
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0) {
    node.limits.shm_bytes = std::uint64_t{shm.f_blocks} * shm.f_frsize;
    node.limits.shm_free_bytes = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  }
  if (!node.devices.empty()) query_devices(node);
}

NodeFacts inspect_node(const FileTree& tree) {
  NodeFacts node;
  const comm::ProcessInfo self = comm::ProcessInfo::self();
  node.name = self.host;
  node.key = self.node_key;
  utsname system{};
  if (uname(&system) == 0) node.kernel = std::string(system.sysname) + " " + system.release;
  node.version = hips_version();
  node.wire_version = static_cast<std::int32_t>(comm::kWireVersion);
  node.devices = read_devices(tree);
  node.interfaces = read_interfaces(tree);
  node.limits = read_limits(tree);
  if (tree.is_machine()) query_machine(node);
  return node;
}

}  // namespace hips::doctor
