#pragma once

#include <string>

#include <fmt/format.h>

#include <hips/topology.hpp>

#include "topology/formats/parse.hpp"

namespace hips::cli {

/// How collectives run when servers have several ranks, as text for people; "" if each has one rank or there
/// is one server.
inline std::string servers_memory_text(const Topology& topology) {
  if (topology.ranks_per_server == 1 || topology.num_servers() == 1) return "";
  return fmt::format(
      "By default an allreduce uses shared memory among the {} ranks of a server and the plans for {} "
      "between "
      "servers.\nThe plans above are for the other collectives, and for all of them if a plan or a transport "
      "is named.\n",
      topology.ranks_per_server, topology::without_node_level(topology).spec);
}

}  // namespace hips::cli
