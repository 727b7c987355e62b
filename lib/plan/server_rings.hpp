#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

/// A cycle through all servers, and the NICs by which it leaves and reaches each.
class ServerRing {
 public:
  virtual ~ServerRing() = default;
  [[nodiscard]] virtual std::int64_t index_of(std::int64_t server) const = 0;
  [[nodiscard]] virtual std::int64_t server_at(std::int64_t index) const = 0;
  [[nodiscard]] virtual Rail out_rail(std::int64_t server) const = 0;  ///< towards the next server
  [[nodiscard]] virtual Rail in_rail(std::int64_t server) const = 0;   ///< from the one before
};

/// Rings that use different NICs at every server, so that they run side by side.
struct ServerRings {
  struct Directed {
    std::shared_ptr<const ServerRing> ring;
    std::int32_t direction =
        +1;  ///< -1: the same cables the other way round, by the other halves of the ports
  };
  std::vector<Directed> rings;
  std::string order;  ///< "rank order" or "neighbour cycles"
};

/// The most rings that could run side by side: NICs that a ring can use.
std::int32_t max_server_rings(const Topology& topology);

/// Makes `num_rings` NIC-disjoint rings of neighbouring servers.
///
/// On racks and switches any two servers are neighbours: rank order, one ring for each rail. Elsewhere one
/// ring is a closed form for all radices, two are on grids of two levels that have a diagonal pair, and
/// others are searched for up to kMaxSearchedServers servers.
///
/// Cost     closed forms: nothing; search: tens of ms.
/// Errors   kUnsupported: says which shape and why. Requires 1 <= num_rings <= max_server_rings(topology).
Result<ServerRings> make_server_rings(const Topology& topology, std::int32_t num_rings);

}  // namespace hips::plan
