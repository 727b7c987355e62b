#pragma once

#include <string>

#include <fmt/format.h>

#include <hips/topology.hpp>

#include "topology/formats/parse.hpp"

namespace hips::cli {

/// What becomes of plans where servers have several ranks, a line for people; "" where they have one, or
/// there is one server.
inline std::string servers_memory_text(const Topology& topology) {
  if (topology.ranks_per_server == 1 || topology.num_servers() == 1) return "";
  return fmt::format(
      "By default an allreduce goes through the memory that the {} ranks of a server share and, between "
      "servers,\nby the plans for {}; those above carry other calls, and all where a plan or a transport is "
      "named.\n",
      topology.ranks_per_server, topology::without_node_level(topology).spec);
}

}  // namespace hips::cli
