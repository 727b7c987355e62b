#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/config/config.hpp"
#include "transports/verbs/gid.hpp"

namespace hips::doctor {

/// Values by the driver's names of its counters.
using Counters = std::map<std::string, std::uint64_t>;

/// The network interface of a port.
struct Netdev {
  std::string name;  ///< empty if the port has none (InfiniBand)
  std::optional<std::int64_t> mtu;
  std::string state;  ///< "up", "down", "unknown"
  std::string driver;
  Counters statistics;  ///< of /sys/class/net, and those of ethtool -S about PFC and ECN
};

struct DevicePort {
  std::int32_t number = 1;
  std::string state;       ///< "ACTIVE", "DOWN"
  std::string phys_state;  ///< "LinkUp", "Disabled"
  std::string link_layer;  ///< "Ethernet", "InfiniBand"
  std::string rate;        ///< "100 Gb/sec (4X EDR)"
  std::int32_t mtu = 0;    ///< active MTU in bytes; 0 if the device was not queried
  Netdev netdev;
  std::vector<verbs::Gid> gids;
  Counters counters;

  [[nodiscard]] bool active() const { return state == "ACTIVE"; }
  [[nodiscard]] bool roce() const { return link_layer == "Ethernet"; }
};

struct Device {
  std::string name;  ///< "mlx5_0"
  std::string driver;
  std::string firmware;
  std::string model;  ///< the vendor's name, "MT4123"
  std::int32_t numa_node = -1;
  std::string local_cpus;  ///< "0-15"; empty if the kernel does not tell
  bool software = false;   ///< rdma_rxe or siw: a software device on an ordinary interface
  bool iwarp = false;
  std::string problem;  ///< why it cannot be opened
  std::vector<DevicePort> ports;
};

/// Resource limits of this process.
struct ProcessLimits {
  std::optional<std::uint64_t> locked_bytes;  ///< nullopt: unlimited
  bool may_lock_all = false;                  ///< CAP_IPC_LOCK: `locked_bytes` does not apply
  std::optional<std::uint64_t> open_files;    ///< nullopt: unlimited
  std::optional<std::uint64_t> open_files_hard;
  std::uint64_t shm_bytes = 0, shm_free_bytes = 0;  ///< of /dev/shm
  std::uint64_t memory_bytes = 0, memory_free_bytes = 0;
  std::uint64_t huge_pages = 0, huge_pages_free = 0, huge_page_bytes = 0;
  std::string cpus;  ///< CPUs on which this process may run, "0-3,8"
  std::int32_t num_cpus = 0;
  std::int32_t num_online_cpus = 0;
};

/// A network interface on which a software device could be made.
struct Interface {
  std::string name;
  bool up = false;
};

/// Everything that one process sees of its node. Facts only; judge.hpp draws conclusions.
struct NodeFacts {
  std::string name;  ///< host name
  std::string key;   ///< equal for processes that reach each other by shared memory
  std::string kernel;
  std::string version;  ///< of HiPS
  std::int32_t wire_version = 0;
  std::vector<Device> devices;
  std::vector<Interface> interfaces;
  bool built_with_verbs = true;
  ProcessLimits limits;
};

class FileTree;

/// Read devices, Ethernet interfaces and limits from the files below `tree`. query_machine() adds the MTU of
/// ports, the space of /dev/shm and the counters of ethtool.
///
/// Threads  pure reading; any thread.
/// Errors   none: missing or unreadable values are left empty.
std::vector<Device> read_devices(const FileTree& tree);
std::vector<Interface> read_interfaces(const FileTree& tree);
ProcessLimits read_limits(const FileTree& tree);

/// Adds the facts that no file has: the active MTU, whether devices can be opened, ethtool's counters,
/// /dev/shm.
///
/// Cost     opens every device, which takes as long as its driver does.
/// Errors   in Device::problem.
void query_machine(NodeFacts& node);

/// Collects all facts of this node.
NodeFacts inspect_node(const FileTree& tree);

/// The number of CPUs in "0-3,8".
std::int32_t count_cpus(std::string_view list);
/// Do two such lists have a common CPU?
bool share_cpus(std::string_view a, std::string_view b);

}  // namespace hips::doctor
