#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

/// A cycle through all servers, with the NICs by which it leaves and reaches each of them.
class ServerRing {
 public:
  virtual ~ServerRing() = default;
  [[nodiscard]] virtual std::int64_t index_of(std::int64_t server) const = 0;
  [[nodiscard]] virtual std::int64_t server_at(std::int64_t index) const = 0;
  [[nodiscard]] virtual Rail out_rail(std::int64_t server) const = 0;  ///< towards the next server
  [[nodiscard]] virtual Rail in_rail(std::int64_t server) const = 0;   ///< from the one before
};

/// Rings that use different NICs at every server, so that they can run at the same time.
struct ServerRings {
  struct Directed {
    std::shared_ptr<const ServerRing> ring;
    std::int32_t direction =
        +1;  ///< -1: the same cables in the other direction, by the other halves of the ports
  };
  std::vector<Directed> rings;
  std::string order;  ///< "rank order" or "neighbour cycles"
};

/// The largest number of rings that could run at the same time: the NICs that rings can use.
std::int32_t max_server_rings(const Topology& topology);

/// Makes `num_rings` NIC-disjoint rings of neighbouring servers.
///
/// On racks and switches any two servers are neighbours: rank order, one ring for each rail. Elsewhere there
/// is a closed form for one ring for all radices, and for two rings on grids of two levels that have a
/// diagonal pair. Other rings are searched for, for up to kMaxSearchedServers servers.
///
/// Shapes   requires 1 <= num_rings <= max_server_rings(topology).
/// Cost     closed forms: nothing; search: tens of ms.
/// Errors   kUnsupported: says which shape and why.
Result<ServerRings> make_server_rings(const Topology& topology, std::int32_t num_rings);

}  // namespace hips::plan
