#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/comm/control/wire.hpp"

namespace hips::comm {

/// A random name for a process, unique in the job and beyond.
struct ProcessUid {
  std::uint64_t high = 0, low = 0;
  static ProcessUid random();
  friend auto operator<=>(const ProcessUid&, const ProcessUid&) = default;
};

/// Where a process's control plane listens: numeric addresses, the best one first, and one port.
struct ControlAddress {
  std::vector<std::string> hosts;
  std::uint16_t port = 0;
};

/// What the members of a communicator know about each other's processes.
struct ProcessInfo {
  ProcessUid uid;
  std::int32_t pid = 0;
  std::string host;      ///< its name, for people
  std::string host_key;  ///< equal where two processes can reach each other's memory and process numbers
  std::vector<std::uint64_t> cores;  ///< bits of those that it may run on
  ControlAddress control;
  /// RDMA ports that it may use, in the order of rails; a port may serve several. 0: none, or none asked for.
  std::uint32_t rdma_rails = 0;
  std::string rdma_problem;  ///< why there is none, where somebody looked
  /// Network interfaces that TCP may use, in the order of rails. 0: none, or none asked for.
  std::uint32_t socket_rails = 0;
  bool socket_loopback = false;  ///< they are loopback, which nobody else reaches
  std::string socket_problem;    ///< why there is none, where somebody looked

  /// This process; `control` is left empty.
  static ProcessInfo self();
};

/// This host's name, for people.
std::string host_name();

/// Do all of them share one host's memory?
bool all_on_one_host(const std::vector<ProcessInfo>& processes);

/// "pid 17 on node1"
std::string to_string(const ProcessInfo& info);

void put_process(ByteWriter& writer, const ProcessInfo& info);
ProcessInfo get_process(ByteReader& reader);

void put_control_address(ByteWriter& writer, const ControlAddress& address);
ControlAddress get_control_address(ByteReader& reader);

}  // namespace hips::comm
