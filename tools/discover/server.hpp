#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "tools/doctor/node.hpp"

namespace hips::discover {

/// A NUMA node: a part of a server's memory and its local CPUs.
struct NumaNode {
  std::int32_t number = 0;  ///< of the operating system
  std::string cpus;         ///< "0-15,32-47"
  std::int32_t num_cores = 0;
  std::uint64_t memory_bytes = 0;
};

/// The location of a device in a server.
struct DeviceLocation {
  std::string pci;                     ///< "0000:3b:00.0"; empty if it is no PCI function
  double pcie_bytes_per_s = 0;         ///< of its PCIe link; 0: unknown
  std::uint64_t host_bridge = 0;       ///< identifies a host bridge of the server; 0: not below one
  std::vector<std::uint64_t> bridges;  ///< PCI bridges from the host bridge downwards
  std::vector<std::int32_t> numa;      ///< local NUMA nodes; several, or all, if the system does not tell
};

/// A port of an RDMA device, a network interface, or both if they belong together.
struct ServerNic {
  std::string rdma;                    ///< "mlx5_0"; empty if there is none
  std::string interface;               ///< "eth2"; empty if there is none
  std::int32_t port = 1;               ///< of the RDMA device
  std::string state;                   ///< "up", "down"; empty: unknown
  double bandwidth_bytes_per_s = 0;    ///< of the link, one direction; 0: unknown
  std::vector<std::string> addresses;  ///< "10.0.0.1/24"
  DeviceLocation location;

  /// "mlx5_0", "mlx5_0:2", "eth2"
  [[nodiscard]] std::string name() const;
};

/// The CPUs, memory and NICs of a server.
struct Server {
  std::string host;
  std::int32_t num_packages = 0, num_cores = 0, num_cpus = 0;
  std::vector<NumaNode> numa;
  std::vector<ServerNic> nics;
};

/// The distance between two NICs, in the terms of `nvidia-smi topo -m`.
enum class Distance : std::uint8_t {
  kSelf,     ///< X: the same NIC
  kPix,      ///< at most one PCIe bridge between them: functions of a card, ports of a switch
  kPxb,      ///< several PCIe bridges
  kPhb,      ///< the host bridge, which is the CPU
  kNode,     ///< host bridges of one NUMA node
  kSys,      ///< NUMA nodes
  kUnknown,  ///< one of them is no PCI function
};

/// Threads  pure; any thread.
Distance distance(const ServerNic& a, const ServerNic& b);
/// kNode if the NIC is local to the NUMA node, else kSys.
Distance distance(const ServerNic& nic, const NumaNode& node);
/// "X", "PIX", "PXB", "PHB", "NODE", "SYS", "-"
std::string_view to_string(Distance distance);

/// Describes this server: the locations of devices come from hwloc, their properties from the kernel's files
/// (`node`), addresses from the interfaces.
///
/// Cost     hwloc reads a few hundred files; tens of milliseconds.
/// Errors   kSystem: hwloc fails.
Result<Server> inspect_server(const doctor::NodeFacts& node);

/// Reads a file that `lstopo FILE.xml` has written on another server. It has no addresses, states and rates.
///
/// Errors   kInvalidArgument: the file cannot be read, is larger than 64 MiB, or is not such an XML file.
Result<Server> read_server(const std::string& path);

/// Text for people: NUMA nodes, NICs and a matrix of distances.
std::string server_text(const Server& server);
/// The same as JSON.
std::string server_json(const Server& server);

/// Parses a port's rate as the kernel writes it, "100 Gb/sec (4X EDR)", to bytes/s; 0 if it is malformed.
double port_rate(const std::string& text);

}  // namespace hips::discover
