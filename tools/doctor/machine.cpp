#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>

#include <hips/hips.h>

#include "lib/comm/process_info.hpp"
#include "lib/comm/wire.hpp"
#include "tools/doctor/ethtool.hpp"
#include "tools/doctor/file_tree.hpp"
#include "tools/doctor/host.hpp"
#ifdef HIPS_HAVE_VERBS
#include "transports/verbs/device.hpp"
#endif

namespace hips::doctor {
namespace {

/// ethtool -S of a NIC has hundreds of lines for its queues; these are the ones about lost and paused
/// packets.
bool tells_of_congestion(std::string_view name) {
  for (const std::string_view part :
       {"pause", "ecn", "cnp", "discard", "out_of_buffer", "rx_prio", "tx_prio"})
    if (name.find(part) != std::string_view::npos) return name.find("_bytes") == std::string_view::npos;
  return false;
}

#ifdef HIPS_HAVE_VERBS
void ask_devices(Host& host) {
  auto contexts = verbs::open_devices();
  if (!contexts) {
    host.device_problem = contexts.error().message;
    return;
  }
  for (Device& device : host.devices) {
    const auto context = std::find_if(contexts->begin(), contexts->end(), [&](const auto& one) {
      return device.name == ibv_get_device_name(one->device);
    });
    for (Port& port : device.ports) {
      if (context == contexts->end()) continue;
      const auto facts = verbs::query_port(**context, static_cast<std::uint8_t>(port.number));
      if (facts) port.mtu = static_cast<std::int32_t>(verbs::mtu_bytes(facts->active_mtu));
    }
    if (context == contexts->end())
      host.device_problem =
          "verbs: " + device.name + " cannot be opened; see the permissions of /dev/infiniband";
  }
}
constexpr bool kBuiltWithVerbs = true;
#else
void ask_devices(Host& /*host*/) {}
constexpr bool kBuiltWithVerbs = false;
#endif

}  // namespace

void ask_machine(Host& host) {
  host.built_with_verbs = kBuiltWithVerbs;
  for (Device& device : host.devices)
    for (Port& port : device.ports) {
      if (port.netdev.name.empty()) continue;
      for (const auto& [name, value] : ethtool_counters(port.netdev.name))
        if (tells_of_congestion(name)) port.netdev.statistics[name] = value;
    }
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0) {
    host.limits.shm_bytes = std::uint64_t{shm.f_blocks} * shm.f_frsize;
    host.limits.shm_free_bytes = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  }
  if (!host.devices.empty()) ask_devices(host);
}

Host look_at_host(const FileTree& tree) {
  Host host;
  const comm::ProcessInfo self = comm::ProcessInfo::self();
  host.name = self.host;
  host.key = self.host_key;
  utsname system{};
  if (uname(&system) == 0) host.kernel = std::string(system.sysname) + " " + system.release;
  host.version = hips_version();
  host.wire_version = static_cast<std::int32_t>(comm::kWireVersion);
  host.devices = read_devices(tree);
  host.interfaces = read_interfaces(tree);
  host.limits = read_limits(tree);
  if (tree.is_machine()) ask_machine(host);
  return host;
}

}  // namespace hips::doctor
