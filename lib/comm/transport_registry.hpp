#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lib/base/result.hpp"
#include "lib/comm/process_info.hpp"
#include "transports/transport.hpp"

namespace hips::comm {

/// A transport as the registry knows it; docs/architecture.md says how to add one.
struct TransportEntry {
  std::string_view name;         ///< "shm"
  std::string_view description;  ///< one line
  /// Could these two processes talk over it? The same answer on every rank.
  bool (*reaches)(const ProcessInfo& a, const ProcessInfo& b);
  Result<std::unique_ptr<transport::Transport>> (*make)();
};

/// All transports, best first.
std::span<const TransportEntry> transport_entries();

/// The first transport that reaches from a to b, among all for "auto", else the named one. Null where none
/// does.
const TransportEntry* transport_between(std::string_view choice, const ProcessInfo& a, const ProcessInfo& b);

/// kInvalidArgument when HIPS_TRANSPORT names no transport; lists them.
Status check_transport_choice(std::string_view choice);

}  // namespace hips::comm
