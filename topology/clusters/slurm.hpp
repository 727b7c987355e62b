#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "topology/clusters/cluster_topology.hpp"

namespace hips::topology {

/// Reads Slurm's topology.conf: SwitchName with Switches or Nodes (topology/tree), BlockName with Nodes
/// (topology/block), or RingName with Nodes (topology/ring).
///
/// A tree becomes switch:n (one switch), leafspine:l,s (l leaf switches of up to s nodes) or fattree:k (three tiers of up
/// to k/2, k/2 and k). Switches with fewer children than others leave places empty: leafspine:4,6[0-19] is a part of
/// leafspine:4,6. Tiers with one child are left out; more tiers than a family has count as two, and several tops as joined,
/// with a note. Blocks become leaves. The file does not contain the number of cables upwards, so no tier is oversubscribed.
/// A ring becomes torus:n with its nodes in the order of the file. If there are several rings, `which` names one, as
/// "default:RING"; the file's topology is called "default".
///
/// Shapes   lines of KEY=VALUE, as in the file or as `scontrol show topology` prints them; keys in any case; values in quotes
///          or without; "#" begins a comment; "\" at the end continues a line with the next one, including its spaces.
/// Cost     linear in the file and in its names, of which there are at most kMaxServerNames.
/// Errors   kInvalidArgument: `name` of the file, line, key, the value seen and what would be right.
/// Source   topology.conf(5) of Slurm.
Result<ClusterTopology> read_slurm_topology(std::string_view name, std::string_view text,
                                            std::string_view which = {});

/// Reads one topology of a topology.yaml: the one called `which`. If `which` is empty: the first with
/// cluster_default: true, otherwise the only one. Trees, blocks and rings become the same as those of a
/// topology.conf. A torus3d becomes torus:XxYxZ, or a part of it if its regions leave places empty. `which`
/// may end in ":UNIT", the name of a ring or a torus.
///
/// Cost     as above; the limits of topology/yaml_tree.hpp.
/// Errors   as above. kUnsupported, too: flat, which does not describe the wiring; several rings or toruses,
///          and `which` names none.
/// Source   topology.yaml(5) of Slurm 25.05, for torus3d 26.05.
Result<ClusterTopology> read_slurm_yaml(std::string_view name, std::string_view text, std::string_view which);

/// Is the text one of these two files?
bool is_slurm(std::string_view text);
/// Reads the one that it is.
Result<ClusterTopology> read_slurm(std::string_view name, std::string_view text, std::string_view which = {});
/// Reads the file at `path`, whose text is given, with the files that a topology.conf includes (slurm_source.hpp).
Result<ClusterTopology> read_slurm_file(const std::string& path, std::string_view text,
                                        std::string_view which = {});

}  // namespace hips::topology
