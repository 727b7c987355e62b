#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// The cables between two switches together, or one cable of a server.
struct WiredCable {
  std::size_t a = 0, b = 0;  ///< nodes; a is the server if only one end is a server
  std::string a_port{}, b_port{};
  double bandwidth_bytes_per_s =
      0;  ///< of all cables of it that are up; of one that is down, its rate when up
  double latency_ns = 0;
  bool up = true;
};

/// The part of a cabling that carries data of jobs: servers, and the switches that join them.
///
/// Shapes   nodes are numbered; servers come first, in the natural order of their names ("n2" before "n10"), then the
///          switches in that order.
struct ServerWiring {
  std::vector<std::string> names;  ///< by node
  std::size_t num_servers = 0;
  std::vector<WiredCable> cables;
  std::vector<std::vector<std::size_t>> of;  ///< by node: numbers of its cables
  Cabling listed;                            ///< the same with every cable that the file lists
  std::vector<std::string> notes;            ///< those of the cabling, and what was left out or assumed
  std::size_t num_left_out = 0;              ///< switches on no path between two servers

  [[nodiscard]] std::size_t size() const { return names.size(); }
  [[nodiscard]] bool is_server(std::size_t node) const { return node < num_servers; }
  /// The other end of a cable of a node.
  [[nodiscard]] std::size_t across(std::size_t cable, std::size_t node) const {
    return cables[cable].a == node ? cables[cable].b : cables[cable].a;
  }
};

/// What becomes of switches on no path between two servers.
enum class DeadEnds { kLeaveOut, kKeep };

/// Decides which nodes are servers, and gives cables of unknown rate that of the others of their kind.
///
/// Errors   kInvalidArgument: no servers, two nodes of one name, or cables that do not join all servers.
Result<ServerWiring> wiring_of(std::string_view name, Cabling cabling,
                               DeadEnds dead_ends = DeadEnds::kLeaveOut);

/// The number of switches between a switch and the closest server, by node; SIZE_MAX: none is reached. Of servers 0.
std::vector<std::size_t> tiers_of(const ServerWiring& wiring);

/// Compares names as people do: numbers inside them by their value.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace hips::topology
