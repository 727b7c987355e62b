#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "topology/clusters/hostlist.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/clusters/slurm_source.hpp"

namespace hips::topology {

/// The names of the parts of Slurm's two topology formats, for errors.
struct SlurmWords {
  std::string_view switch_name, block_name, switches, nodes;  ///< keys
  std::string_view assign;                                    ///< between a key and its value
  std::string_view entry;                                     ///< the text that describes a switch: "line"
};

/// A switch or a block in its file; its children are hostlists.
struct SlurmEntry {
  std::size_t line = 0;
  bool is_block = false;
  bool is_shown = false;  ///< as scontrol shows it: with the nodes below it beside its switches
  std::string name;
  std::optional<std::string> switches, nodes;
};

/// The switches and blocks of one topology, and their conversion to a family. Switches with fewer children than others
/// of their tier become places without servers.
class SlurmTree {
 public:
  SlurmTree(SlurmSource file, const SlurmWords& words) : file_(std::move(file)), words_(words) {}

  /// Errors   kInvalidArgument: an invalid entry, or a name that occurs twice, or a node in two blocks.
  Result<void> add(const SlurmEntry& entry);

  [[nodiscard]] bool empty() const { return nodes_.empty() && blocks_without_nodes_ == 0; }

  /// Returns the family and its servers in order, with `notes` and those about the tree. Requires !empty(). Errors those
  /// of read_slurm_topology() about the whole tree.
  Result<ClusterTopology> finish(const SlurmOptions& options, std::vector<std::string> notes);

  [[nodiscard]] tl::unexpected<Status> bad(std::size_t line, std::string_view problem,
                                           Code code = Code::kInvalidArgument) const;

 private:
  struct Node {
    std::string name;
    std::size_t line = 0;
    bool is_block = false;
    bool is_shown = false;
    bool has_all = false;  ///< Nodes=ALL
    std::vector<std::string> switches, nodes;
    std::vector<std::size_t> below{};  ///< of `switches`
    std::size_t parent = SIZE_MAX;
  };
  /// A switch with nodes, and the way to it from the top: the number of each switch among those below one switch.
  struct Leaf {
    std::size_t node = 0;
    std::vector<std::size_t> way;
  };

  Result<std::vector<std::string>> names(const SlurmEntry& entry, std::string_view key,
                                         std::string_view value);
  Result<void> drop_known(const SlurmEntry& entry, Node& node);
  Result<void> place_all(const SlurmOptions& options);
  Result<void> join(bool is_job);
  Result<void> drop_neighbours();
  Result<void> choose_parents();
  [[nodiscard]] tl::unexpected<Status> has_both(const Node& node) const;
  [[nodiscard]] tl::unexpected<Status> forms_cycle(std::size_t node) const;
  [[nodiscard]] tl::unexpected<Status> names_cycle(const std::vector<std::size_t>& cycle) const;
  Result<void> keep_ways_to(const std::vector<std::string>& job);
  Result<std::vector<std::size_t>> find_tops(bool is_job);
  Result<void> find_leaves(const std::vector<std::size_t>& tops);
  void note_again();
  void note_tops(const std::vector<std::size_t>& tops, bool has_rate);
  [[nodiscard]] std::string rail_spec(const std::vector<std::size_t>& tops) const;
  [[nodiscard]] std::size_t num_tiers() const;
  [[nodiscard]] std::optional<std::size_t> fat_tree_ports();
  Result<ClusterTopology> whole_tree(const SlurmOptions& options, const std::vector<std::size_t>& tops);
  std::string spec_of();
  void list_cables();
  void list_rails(const std::vector<std::size_t>& tops);

  SlurmSource file_;
  SlurmWords words_;
  ClusterTopology result_;
  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;  ///< in the order of the servers
  std::unordered_map<std::string, std::size_t> by_name_;
  std::unordered_set<std::string> hosts_;
  /// Nodes that a later switch has again, by that switch.
  std::map<std::size_t, std::vector<std::string>> again_;
  std::size_t blocks_without_nodes_ = 0;
  SlurmEntry first_without_;
  HostlistExpander expander_;
};

}  // namespace hips::topology
