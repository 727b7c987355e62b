#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/comm/control/wire.hpp"

namespace hips::comm {

/// A random identifier of a process, globally unique.
struct ProcessUid {
  std::uint64_t high = 0, low = 0;
  static ProcessUid random();
  friend auto operator<=>(const ProcessUid&, const ProcessUid&) = default;
};

/// The address of a process's control plane: numeric addresses, the best one first, and one port.
struct ControlAddress {
  std::vector<std::string> hosts;
  std::uint16_t port = 0;
};

/// A NIC of a process's node, as its kernel describes it.
struct NicInfo {
  std::string name{};                ///< "eth0", "mlx5_0:1"
  std::string address{};             ///< "10.0.1.2"; empty if it has none
  std::string subnet{};              ///< "10.0.1.0/24", "fe80::/64"; empty if it is not known
  std::string device{};              ///< the interface that carries it: "eth0" for the VLAN "eth0.7"
  double bandwidth_bytes_per_s = 0;  ///< of the link, one direction; 0: not known
  std::int32_t mtu = 0;              ///< 0: not known
  bool named_by_node = false;        ///< the name of the node leads to it, and the user did not choose it
};

/// What each member of a communicator knows about the process of every other member.
struct ProcessInfo {
  ProcessUid uid;
  std::int32_t pid = 0;
  std::string host;      ///< host name, for messages
  std::string node_key;  ///< equal if two processes can access each other's memory and process IDs
  std::vector<std::uint64_t> cores;  ///< bit mask of the cores that it may run on
  ControlAddress control;
  /// By rail, the RDMA port; one port may serve several rails. Empty: no port, or RDMA was not requested.
  std::vector<NicInfo> rdma_nics;
  std::string rdma_problem;  ///< why there is no port, if one was looked for
  /// By rail, the network interface for TCP. Empty: no interface, or TCP was not requested.
  std::vector<NicInfo> socket_nics;
  bool socket_loopback = false;  ///< they are loopback, unreachable from other nodes
  std::string socket_problem;    ///< why there is no interface, if one was looked for

  /// Describes this process; `control` is left empty.
  static ProcessInfo self();
};

/// The host name of this node, for messages.
std::string host_name();

/// True if all processes share the memory of one node.
bool all_on_one_node(const std::vector<ProcessInfo>& processes);

/// "pid 17 on node1"
std::string to_string(const ProcessInfo& info);

void put_process(ByteWriter& writer, const ProcessInfo& info);
ProcessInfo get_process(ByteReader& reader);

void put_control_address(ByteWriter& writer, const ControlAddress& address);
ControlAddress get_control_address(ByteReader& reader);

}  // namespace hips::comm
