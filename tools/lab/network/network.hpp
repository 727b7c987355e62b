#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "tools/lab/network/shaping.hpp"
#include "tools/lab/network/wiring.hpp"

namespace hips::lab {

/// Largest packet of a rail: with it the active RoCE MTU is 4096.
inline constexpr std::int64_t kRailMtu = 9000;

/// The lab's end of a server's management NIC: "m0".
std::string management_tap(std::int64_t server);

/// What `ip`, `bridge` and `tc` have to do, a command each line, as their -batch reads it.
struct NetworkCommands {
  std::string ip, bridge, tc;
};

/// The lab's ends of the NICs are taps, which guests open. Where servers are namespaces, `servers` has a process of each,
/// and a NIC is a pair of interfaces whose other end, "nic0", "nic1", ... or "mgmt0", is in that process's namespace.
///
/// Threads  pure; any thread.
NetworkCommands network_commands(const Wiring& wiring, std::int64_t num_servers, const Shaping& shaping,
                                 const std::vector<pid_t>& servers = {});

/// Builds the network of a lab in the network namespace that we are in.
///
/// Errors   kUnsupported: a program is missing. kSystem: one of them failed; its message.
Status build_network(const Wiring& wiring, std::int64_t num_servers, const Shaping& shaping,
                     const std::vector<pid_t>& servers = {});

/// What an interface of the namespace has passed on so far.
struct InterfaceCounters {
  std::int64_t received_bytes = 0, sent_bytes = 0;  ///< the lab's end of a NIC receives what its server sends
  std::int64_t received_packets = 0, sent_packets = 0;
  std::int64_t dropped_packets = 0;  ///< by the interface or its queue
};

/// What the queues of interfaces have dropped, by interface, from the output of `tc -s -json qdisc show`; empty for anything
/// else. `ip` does not count these.
std::map<std::string, std::int64_t> drops_of_queues(const std::string& json);

/// Counters of all interfaces of our namespace, by name.
Result<std::map<std::string, InterfaceCounters>> read_interfaces();

}  // namespace hips::lab
