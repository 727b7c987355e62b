#pragma once

#include <string_view>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// Is the text a platform of SimGrid, in XML?
bool is_simgrid(std::string_view text);

/// Reads the only <cluster> of a platform: topology FAT_TREE with topo_parameters such as "2;4,4;1,2;1,2" (levels; children of a
/// node of each level; parents; parallel cables), TORUS with "4,4,2", or none: a switch. `bw` and `lat` are those of each cable.
/// Servers are `prefix`, a number of `radical`, `suffix`; switches are called by the cluster's id, level and number.
///
/// Cost     linear in the text and the cables, at most 65,536 nodes of a level and 200,000 cables.
/// Errors   kInvalidArgument: `name` of the file, line, the value seen and what would be right; no cluster or several, and other
///          topologies.
/// Source   the platform files of SimGrid (Casanova et al. 2014, doi:10.1016/j.jpdc.2014.06.008); fat trees as in Zahavi 2012,
///          doi:10.1002/cpe.1899.
Result<Cabling> read_simgrid(std::string_view name, std::string_view text);

}  // namespace hips::topology
