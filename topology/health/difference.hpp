#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// What differs between the cables of a cluster earlier and now, by the names of servers, switches and ports.
struct CablingDifference {
  struct Rate {
    std::string cable;
    double before = 0, now = 0;  ///< bytes/s; 0: down
  };
  struct Count {
    std::string name;
    std::size_t before = 0, now = 0;
  };
  std::vector<std::string> servers_gone, servers_new, switches_gone, switches_new;
  std::vector<std::string> cables_gone,
      cables_new;                  ///< between nodes of both; the others follow from the nodes
  std::vector<std::string> moved;  ///< "n1 -- leaf2: port 3, before port 4"
  std::vector<Rate> rates;
  std::vector<Count> nics;  ///< of servers of both

  [[nodiscard]] bool empty() const;
};

/// Compares two cablings. Cables are the same if they join the same ports, or else the same two nodes. If only one file has the
/// names of switches, cables are compared by their servers and counted, whatever switches they lead to: `by_switches` is false.
///
/// Cost     n log n in the cables.
CablingDifference compare_cablings(const Cabling& before, const Cabling& now, bool by_switches = true);

}  // namespace hips::topology
