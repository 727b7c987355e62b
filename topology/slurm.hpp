#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::topology {

/// More nodes and switches than these are refused before anything is expanded.
inline constexpr std::uint64_t kMaxImportedNames = 1U << 20U;

/// What a topology.conf says.
struct SlurmTopology {
  Topology topology;
  std::vector<std::string> nodes;  ///< in the order of the servers: below one switch side by side
  std::vector<std::string> notes;  ///< what was read and means nothing here, a line each
};

/// Reads Slurm's topology.conf: SwitchName with Switches or Nodes (topology/tree), BlockName with Nodes
/// (topology/block), or RingName with Nodes (topology/ring).
///
/// A tree whose switches of each tier have equally many children becomes switch:n (one switch), leafspine:l,s
/// (two tiers; l switches of s nodes) or fattree:k (three tiers of k/2, k/2 and k); tiers of one child are
/// left out. Blocks of equal size are leaves. How many cables go up is not in the file, so none is
/// oversubscribed. A ring becomes torus:n, its nodes in the order in which they stand; of several `which`
/// names one, as "default:RING", the file's topology being called "default".
///
/// Shapes   lines of KEY=VALUE; keys in any case; "#" begins a comment; "\" at its end continues a
///          line with all of the next one, its spaces too.
/// Cost     the file, and the names it stands for: at most kMaxImportedNames.
/// Errors   kInvalidArgument: `name` of the file, line, key, the value seen and what would be right.
///          kUnsupported: a tree that is no topology here; says which switches differ, or the tiers and what
///          to write instead.
/// Source   topology.conf(5) of Slurm.
Result<SlurmTopology> read_slurm_topology(std::string_view name, std::string_view text,
                                          std::string_view which = {});

/// Reads one topology of a topology.yaml: the one called `which`, or, where that is empty, the first with
/// cluster_default: true, else the only one. Trees, blocks and rings become what they become in a
/// topology.conf, a torus3d torus:XxYxZ, or a part of it where its regions leave places empty. `which` may go
/// on with ":UNIT", the name of a ring or a torus.
///
/// Cost     as above; the limits of topology/yaml_tree.hpp.
/// Errors   as above. kUnsupported, too: flat, which says nothing of the wiring; several rings or toruses of
///          which none is chosen.
/// Source   topology.yaml(5) of Slurm 25.05, for torus3d 26.05.
Result<SlurmTopology> read_slurm_yaml(std::string_view name, std::string_view text, std::string_view which);

}  // namespace hips::topology
