#include "lib/comm/setup/reach.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "lib/comm/setup/transport_registry.hpp"

namespace hips::comm {
namespace {

/// Calls visit(b, a) for each process a with one process b of each kind on its node, and with one of each kind on another
/// node, until it returns false. Processes with the same number of ports and interfaces are of the same kind.
///
/// Cost     the number of processes times the number of kinds.
template <typename Visit>
void visit_pairs_of_kinds(const std::vector<ProcessInfo>& processes, Visit&& visit) {
  using Kind = std::tuple<std::size_t, std::size_t, bool>;
  std::map<std::string_view, std::map<Kind, std::size_t>> on_node;
  std::map<Kind, std::vector<std::size_t>> anywhere;  // two of each, on different nodes
  for (std::size_t a = 0; a < processes.size(); ++a) {
    const ProcessInfo& process = processes[a];
    const Kind kind(process.rdma_nics.size(), process.socket_nics.size(), process.socket_loopback);
    const auto is_elsewhere = [&](std::size_t b) { return processes[b].node_key != process.node_key; };
    auto& here = on_node[process.node_key];
    for (const auto& [other, b] : here)
      if (!visit(b, a)) return;
    for (const auto& [other, of_kind] : anywhere)
      if (const auto b = std::ranges::find_if(of_kind, is_elsewhere); b != of_kind.end() && !visit(*b, a))
        return;
    here.emplace(kind, a);
    auto& known = anywhere[kind];
    if (known.size() < 2 && std::ranges::all_of(known, is_elsewhere)) known.push_back(a);
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
