#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "tools/doctor/host.hpp"

namespace hips::discover {

/// A part of a server's memory and the CPUs next to it.
struct NumaNode {
  std::int32_t number = 0;  ///< as the operating system has it
  std::string cpus;         ///< "0-15,32-47"
  std::int32_t num_cores = 0;
  std::uint64_t memory_bytes = 0;
};

/// Where a device hangs in a server.
struct Place {
  std::string pci;                     ///< "0000:3b:00.0"; empty where it is no PCI function
  double pcie_bytes_per_s = 0;         ///< of its PCIe link; 0: not known
  std::uint64_t host_bridge = 0;       ///< tells host bridges of one server apart; 0: not below one
  std::vector<std::uint64_t> bridges;  ///< PCI bridges from the host bridge downwards
  std::vector<std::int32_t> numa;  ///< nodes that it is local to; several, or all: the system does not say
};

/// A port of an RDMA device, a network interface, or both where they are one.
struct ServerNic {
  std::string rdma;                    ///< "mlx5_0"; empty where there is none
  std::string interface;               ///< "eth2"; empty where there is none
  std::int32_t port = 1;               ///< of the RDMA device
  std::string state;                   ///< "up", "down"; empty: not known
  double bandwidth_bytes_per_s = 0;    ///< of the link, one direction; 0: not known
  std::vector<std::string> addresses;  ///< "10.0.0.1/24"
  Place place;

  /// "mlx5_0", "mlx5_0:2", "eth2"
  [[nodiscard]] std::string name() const;
};

/// What is inside a server.
struct Server {
  std::string host;
  std::int32_t num_packages = 0, num_cores = 0, num_cpus = 0;
  std::vector<NumaNode> numa;
  std::vector<ServerNic> nics;
};

/// How far apart two NICs are, in the words of `nvidia-smi topo -m`.
enum class Distance : std::uint8_t {
  kSelf,     ///< X: the same
  kPix,      ///< at most one PCIe bridge between them: functions of a card, ports of a switch
  kPxb,      ///< several PCIe bridges
  kPhb,      ///< the host bridge, which is the CPU
  kNode,     ///< host bridges of one NUMA node
  kSys,      ///< NUMA nodes
  kUnknown,  ///< one of them is no PCI function
};

/// Threads  pure; any thread.
Distance distance(const ServerNic& a, const ServerNic& b);
/// kNode where the NIC is local to the node, else kSys.
Distance distance(const ServerNic& nic, const NumaNode& node);
/// "X", "PIX", "PXB", "PHB", "NODE", "SYS", "-"
std::string_view to_string(Distance distance);

/// Looks at this server: hwloc says where devices hang, the kernel's files what they are (`host`), the
/// interfaces what addresses they have.
///
/// Cost     hwloc reads a few hundred files; tens of milliseconds.
/// Errors   kSystem: hwloc cannot look.
Result<Server> look_at_server(const doctor::Host& host);

/// Reads what `lstopo FILE.xml` has written on another server. Addresses, states and rates are not in it.
///
/// Errors   kInvalidArgument: the file cannot be read, is larger than 64 MiB, or is no such XML.
Result<Server> read_server(const std::string& path);

/// NUMA nodes, NICs and a matrix of distances, for people.
std::string server_text(const Server& server);
/// The same for machines.
std::string server_json(const Server& server);

/// "100 Gb/sec (4X EDR)" as the kernel writes rates of ports, in bytes/s; 0 where it is none.
double port_rate(const std::string& text);

/// What the kernel says of an interface's link, in bytes/s; 0 where it does not know.
double interface_rate(const std::string& name);

}  // namespace hips::discover
