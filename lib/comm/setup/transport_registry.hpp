#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "transports/transport.hpp"

namespace hips::comm {

/// The transports of one kind that a process has created, one per NIC.
struct TransportSet {
  std::vector<std::unique_ptr<transport::Transport>> transports;
  std::vector<std::size_t> by_rail;  ///< index in `transports`; rails beyond the end start over
};

/// A registered transport. docs/extending.md describes how to add one.
struct TransportEntry {
  std::string_view name;         ///< "shm"
  std::string_view description;  ///< one line
  double message_seconds;        ///< see cost::Medium
  /// True if these two processes can use it. The same answer on all ranks.
  bool (*reaches)(const ProcessInfo& a, const ProcessInfo& b);
  /// Says why the two cannot use it, as a clause with the remedy.
  std::string (*obstacle)(const ProcessInfo& a, const ProcessInfo& b);
  /// The NICs of a process, by rail; empty for shared memory, and where it has none.
  std::span<const NicInfo> (*nics)(const ProcessInfo& process);
  Result<TransportSet> (*make)(const Config& config);
};

/// All transports, best first.
std::span<const TransportEntry> transport_entries();

/// Returns the first transport between a and b: any one for "auto", otherwise the named one. Null if there is none.
const TransportEntry* transport_between(std::string_view choice, const ProcessInfo& a, const ProcessInfo& b);

/// Says why transport_between() returns null.
std::string obstacles_between(std::string_view choice, const ProcessInfo& a, const ProcessInfo& b);

/// Returns kInvalidArgument, with the valid names, if HIPS_TRANSPORT names an unknown transport.
Status check_transport_choice(std::string_view choice);

/// Looks for the RDMA ports and network interfaces that HIPS_TRANSPORT allows, and describes them in `process`, that of this process.
/// What was found a second ago at most, with the same settings, is not looked for again.
///
/// Errors   kInvalidArgument: HIPS_IB_HCA, HIPS_IB_GID_INDEX or HIPS_SOCKET_IFNAME is invalid. A node without a
///          usable port or interface is an error only if HIPS_TRANSPORT requires one.
Status describe_networks(const Config& config, ProcessInfo& process);

}  // namespace hips::comm
