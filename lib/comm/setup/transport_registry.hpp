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

/// The transports of one kind that a process has made, one for each NIC.
struct TransportSet {
  std::vector<std::unique_ptr<transport::Transport>> transports;
  std::vector<std::size_t> by_rail;  ///< index in `transports`; rails beyond the end start over
};

/// A transport as the registry knows it; docs/architecture.md says how to add one.
struct TransportEntry {
  std::string_view name;         ///< "shm"
  std::string_view description;  ///< one line
  double message_seconds;        ///< cost::Medium's
  /// Could these two processes talk over it? The same answer on every rank.
  bool (*reaches)(const ProcessInfo& a, const ProcessInfo& b);
  /// What stands in the way of it between the two; a clause, with the remedy.
  std::string (*obstacle)(const ProcessInfo& a, const ProcessInfo& b);
  /// How many rails a process has to offer.
  std::size_t (*rails)(const ProcessInfo& process);
  Result<TransportSet> (*make)(const Config& config);
};

/// All transports, best first.
std::span<const TransportEntry> transport_entries();

/// The first transport that reaches from a to b, among all for "auto", else the named one. Null where none
/// does.
const TransportEntry* transport_between(std::string_view choice, const ProcessInfo& a, const ProcessInfo& b);

/// Why transport_between() finds none.
std::string obstacles_between(std::string_view choice, const ProcessInfo& a, const ProcessInfo& b);

/// kInvalidArgument when HIPS_TRANSPORT names no transport; lists them.
Status check_transport_choice(std::string_view choice);

/// Looks for RDMA ports and network interfaces and writes what it finds into `process`, where the choice of
/// transport allows them.
///
/// Errors   kInvalidArgument: HIPS_IB_HCA, HIPS_IB_GID_INDEX or HIPS_SOCKET_IFNAME is wrong. That a host has
/// no
///          usable port or interface is an error only where HIPS_TRANSPORT asks for one.
Status describe_networks(const Config& config, ProcessInfo& process);

}  // namespace hips::comm
