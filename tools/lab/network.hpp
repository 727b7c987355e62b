#pragma once

#include <map>
#include <string>

#include "lib/base/result.hpp"
#include "tools/lab/shaping.hpp"
#include "tools/lab/wiring.hpp"

namespace hips::lab {

/// Largest packet of a rail: with it the active RoCE MTU is 4096.
inline constexpr std::int64_t kRailMtu = 9000;

/// The tap of a server's management NIC: "m0".
std::string management_tap(std::int64_t server);

/// What `ip`, `bridge` and `tc` have to do, a command each line, as their -batch reads it.
struct NetworkCommands {
  std::string ip, bridge, tc;
};

/// Threads  pure; any thread.
NetworkCommands network_commands(const Wiring& wiring, std::int64_t num_servers, const Shaping& shaping);

/// Builds the network of a lab in the network namespace that we are in.
///
/// Errors   kUnsupported: a program is missing. kSystem: one of them failed; its message.
Status build_network(const Wiring& wiring, std::int64_t num_servers, const Shaping& shaping);

/// What an interface of the namespace has passed on so far.
struct InterfaceCounters {
  std::int64_t received_bytes = 0, sent_bytes = 0;  ///< a tap receives what its guest sends
  std::int64_t received_packets = 0, sent_packets = 0;
  std::int64_t dropped_packets = 0;  ///< by the interface or its queue
};

/// Counters of all interfaces, by name.
Result<std::map<std::string, InterfaceCounters>> read_interfaces();

}  // namespace hips::lab
