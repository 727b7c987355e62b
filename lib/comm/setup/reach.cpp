#include "lib/comm/setup/reach.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "lib/comm/setup/transport_registry.hpp"

namespace hips::comm {
namespace {

/// Calls visit(b, a) for one pair of every two kinds of processes, until it returns false. Processes on one node
/// with the same number of ports and interfaces are of the same kind.
///
/// Cost     the number of processes times the number of kinds.
template <typename Visit>
void visit_pairs_of_kinds(const std::vector<ProcessInfo>& processes, Visit&& visit) {
  std::map<std::tuple<std::string_view, std::size_t, std::size_t, bool>, std::size_t> kinds;
  for (std::size_t a = 0; a < processes.size(); ++a) {
    const ProcessInfo& process = processes[a];
    kinds.emplace(std::tuple(std::string_view(process.node_key), process.rdma_nics.size(),
                             process.socket_nics.size(), process.socket_loopback),
                  a);
    for (const auto& [kind, b] : kinds)
      if (a != b && !visit(b, a)) return;
  }
}

}  // namespace

Status check_reach(std::string_view choice, const std::vector<ProcessInfo>& processes) {
  std::map<ProcessUid, std::size_t> ranks;
  for (std::size_t a = 0; a < processes.size(); ++a) {
    if (const auto [other, is_new] = ranks.emplace(processes[a].uid, a); !is_new)
      return Status::error(
          Code::kUnsupported,
          fmt::format("ranks {} and {} are the same process ({}); start one process per rank", other->second,
                      a, to_string(processes[a])),
          Scope::kCommunicator);
  }
  Status status;
  visit_pairs_of_kinds(processes, [&](std::size_t b, std::size_t a) {
    if (transport_between(choice, processes[b], processes[a]) != nullptr) return true;
    status = Status::error(
        Code::kUnsupported,
        fmt::format("no transport connects rank {} ({}) to rank {} ({}): {}", b, to_string(processes[b]), a,
                    to_string(processes[a]), obstacles_between(choice, processes[b], processes[a])),
        Scope::kCommunicator);
    return false;
  });
  return status;
}

cost::Medium medium_between(std::string_view choice, const std::vector<ProcessInfo>& processes) {
  cost::Medium medium = all_on_one_node(processes) ? cost::Medium::kMemory : cost::Medium::kWires;
  visit_pairs_of_kinds(processes, [&](std::size_t b, std::size_t a) {
    if (const TransportEntry* entry = transport_between(choice, processes[b], processes[a]))
      medium.message_seconds = std::max(medium.message_seconds, entry->message_seconds);
    return true;
  });
  return medium;
}

}  // namespace hips::comm
