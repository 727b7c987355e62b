#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/config.hpp"
#include "transports/verbs/gid.hpp"

namespace hips::doctor {

/// Counters by name, as the driver calls them.
using Counters = std::map<std::string, std::uint64_t>;

/// The network interface under a port.
struct Netdev {
  std::string name;  ///< empty where the port has none (InfiniBand)
  std::optional<std::int64_t> mtu;
  std::string state;  ///< "up", "down", "unknown"
  std::string driver;
  Counters statistics;  ///< of /sys/class/net, and what ethtool -S shows of PFC and ECN
};

struct Port {
  std::int32_t number = 1;
  std::string state;       ///< "ACTIVE", "DOWN"
  std::string phys_state;  ///< "LinkUp", "Disabled"
  std::string link_layer;  ///< "Ethernet", "InfiniBand"
  std::string rate;        ///< "100 Gb/sec (4X EDR)"
  std::int32_t mtu = 0;    ///< active, in bytes; 0 where only the device knows it, and was not asked
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
  std::string model;  ///< "MT4123"; what the vendor calls it
  std::int32_t numa_node = -1;
  std::string local_cpus;  ///< "0-15"; empty where the kernel does not say
  bool software = false;   ///< rdma_rxe or siw: a driver on top of an ordinary interface
  bool iwarp = false;
  std::vector<Port> ports;
};

/// What this process may use.
struct Limits {
  std::optional<std::uint64_t> locked_bytes;  ///< nothing: unlimited
  bool may_lock_all = false;                  ///< CAP_IPC_LOCK: the limit does not count
  std::optional<std::uint64_t> open_files;    ///< nothing: unlimited
  std::optional<std::uint64_t> open_files_hard;
  std::uint64_t shm_bytes = 0, shm_free_bytes = 0;  ///< of /dev/shm
  std::uint64_t memory_bytes = 0, memory_free_bytes = 0;
  std::uint64_t huge_pages = 0, huge_pages_free = 0, huge_page_bytes = 0;
  std::string cpus;  ///< "0-3,8": where this process may run
  std::int32_t num_cpus = 0;
  std::int32_t num_online_cpus = 0;
};

/// A network interface that could carry a software device.
struct Interface {
  std::string name;
  bool up = false;
};

/// Everything that was seen on one host, from one process. Facts only; judge.hpp has the opinions.
struct Host {
  std::string name;
  std::string key;  ///< equal where two processes reach each other by shared memory
  std::string kernel;
  std::string version;  ///< of HiPS
  std::int32_t wire_version = 0;
  std::vector<Device> devices;
  std::vector<Interface> interfaces;
  std::string device_problem;  ///< why devices that the kernel has cannot be opened
  bool built_with_verbs = true;
  Limits limits;
};

class FileTree;

/// What the files below `tree` tell of devices, of Ethernet interfaces, and of what this process may use. The
/// ports' MTU, the space of /dev/shm and the counters of ethtool come from ask_machine().
///
/// Threads  pure reading; any thread.
/// Errors   none: what is missing or unreadable is left empty.
std::vector<Device> read_devices(const FileTree& tree);
std::vector<Interface> read_interfaces(const FileTree& tree);
Limits read_limits(const FileTree& tree);

/// Adds what no file tells: the active MTU, whether devices open, ethtool's counters, /dev/shm. Opens every
/// device, which takes as long as its driver does.
///
/// Errors   in Host::device_problem.
void ask_machine(Host& host);

/// All of it, of this host.
Host look_at_host(const FileTree& tree);

/// The number of CPUs in "0-3,8".
std::int32_t count_cpus(std::string_view list);
/// Do two such lists have a CPU in common?
bool share_cpus(std::string_view a, std::string_view b);

}  // namespace hips::doctor
