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

/// What each member of a communicator knows about the process of every other member.
struct ProcessInfo {
  ProcessUid uid;
  std::int32_t pid = 0;
  std::string host;      ///< host name, for messages
  std::string node_key;  ///< equal if two processes can access each other's memory and process IDs
  std::vector<std::uint64_t> cores;  ///< bit mask of the cores that it may run on
  ControlAddress control;
  /// Number of rails over RDMA ports; one port may serve several rails. 0: no port, or RDMA was not requested.
  std::uint32_t rdma_rails = 0;
  std::string rdma_problem;  ///< why there is no port, if one was looked for
  /// Number of rails over network interfaces for TCP. 0: no interface, or TCP was not requested.
  std::uint32_t socket_rails = 0;
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
