#pragma once

#include <string>
#include <utility>
#include <vector>

#include <hips/topology.hpp>

#include "topology/formats/topology_file.hpp"

namespace hips::topology {

/// The result of reading a cluster's description of its wiring. The readers of clusters and the recognition of wirings return one.
struct ClusterTopology {
  Topology topology;
  std::vector<std::string> nodes;  ///< by server
  std::vector<std::string> notes;  ///< entries that were ignored or interpreted, one line each
  ListedCables cabling{};          ///< of which the kinds of all nodes are known
  ToldWiring told{};
};

/// The same as a topology file has it.
inline TopologyFile file_of(ClusterTopology cluster) {
  TopologyFile file;
  file.topology = std::move(cluster.topology);
  file.server_names = std::move(cluster.nodes);
  file.notes = std::move(cluster.notes);
  file.cabling = std::move(cluster.cabling);
  file.told = std::move(cluster.told);
  return file;
}

}  // namespace hips::topology
