#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/formats/cluster_topology.hpp"

namespace hips::topology {

/// What decides how a file of Slurm is read, beside its text.
struct SlurmOptions {
  /// The topology of a topology.yaml, or "TOPOLOGY:UNIT", a ring or a torus of it; of a topology.conf, whose topology is called
  /// "default", also UNIT. Empty: the only one, or the default.
  std::string which{};
  /// The hosts of a job: only the switches between them are read; what is wrong elsewhere does not matter. Empty: all.
  std::vector<std::string> job{};
  /// What Nodes=ALL and flat topologies stand for where no slurm.conf tells.
  std::vector<std::string> all_nodes{};
  /// The path of the file; a slurm.conf in its folder tells all nodes. Empty: there is none.
  std::string path{};
  /// Rates of the tiers of cables (kCableTiers) in bytes/s, of which the file tells none; 0: as assumed.
  std::vector<double> tier_rates{};
};

/// Reads Slurm's topology.conf: SwitchName with Switches or Nodes (topology/tree), BlockName with Nodes
/// (topology/block), or RingName with Nodes (topology/ring).
///
/// A tree becomes switch:n (one switch), leafspine:l,s (l leaf switches of up to s nodes) or fattree:k (three tiers of up
/// to k/2, k/2 and k); switches with the same nodes below no other are rails, rail:n,k. Switches with fewer children than others leave places empty: leafspine:4,6[0-19] is a part of
/// leafspine:4,6. Tiers with one child are left out; more tiers than a family has count as two, unless the rates of the upper ones are
/// given: then the tree stays as it is. Several tops count as joined, with a note; so do several switches above the same ones. Blocks become leaves. The file does not contain the number of cables upwards, so no tier is oversubscribed.
/// A ring becomes torus:n with its nodes in the order of the file. If there are several rings, `which` names one, or
/// the job's hosts do.
///
/// Shapes   lines of KEY=VALUE, as in the file or as `scontrol show topology` prints them, also copied from a terminal
///          (slurm_lines.hpp); keys in any case; values in quotes or without; "#" begins a comment.
/// Cost     linear in the file and in its names, of which there are at most kMaxServerNames.
/// Errors   kInvalidArgument: `name` of the file, line, key, the value seen and what would be right.
/// Source   topology.conf(5) of Slurm.
Result<ClusterTopology> read_slurm_topology(std::string_view name, std::string_view text,
                                            const SlurmOptions& options = {});

/// Reads one topology of a topology.yaml: the one called `which`. If `which` is empty: the first with
/// cluster_default: true, otherwise the only one. Trees, blocks and rings become the same as those of a
/// topology.conf. A torus3d becomes torus:XxYxZ, or a part of it if its regions leave places empty. A flat
/// topology becomes switch:n.
///
/// Cost     as above; the limits of topology/yaml_tree.hpp.
/// Errors   as above. kUnsupported, too: several rings or toruses, and neither `which` nor the job's hosts name one.
/// Source   topology.yaml(5) of Slurm 25.05, for torus3d 26.05.
Result<ClusterTopology> read_slurm_yaml(std::string_view name, std::string_view text,
                                        const SlurmOptions& options = {});

/// Is the text one of these two files?
bool is_slurm(std::string_view text);
/// Reads the one that it is.
Result<ClusterTopology> read_slurm(std::string_view name, std::string_view text,
                                   const SlurmOptions& options = {});
/// Reads the file at `path`, whose text is given, with the files that a topology.conf includes (slurm_source.hpp). Nodes=ALL and
/// flat topologies have the nodes of the slurm.conf beside it.
Result<ClusterTopology> read_slurm_file(const std::string& path, std::string_view text,
                                        SlurmOptions options = {});

}  // namespace hips::topology
