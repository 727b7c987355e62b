#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/setup/design.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/cost/select.hpp"

namespace hips::comm {

/// The ranks of a communicator grouped by node. Exists for a hierarchical communicator only: several nodes, not all with one rank.
/// Emulated servers count as nodes.
struct NodeGroups {
  Rank num_nodes = 0;
  Rank node = -1;           ///< of this rank
  Rank local_rank = -1;     ///< of this rank on its node, 0 to ranks_here() - 1
  std::vector<Rank> ranks;  ///< by node, then by local rank
  std::vector<Rank> first;  ///< by node, where its ranks begin in `ranks`; the last entry is the end

  [[nodiscard]] Rank ranks_on(Rank of_node) const {
    return first[static_cast<std::size_t>(of_node) + 1] - first[static_cast<std::size_t>(of_node)];
  }
  [[nodiscard]] Rank ranks_here() const { return ranks_on(node); }
  /// Of the node with the fewest and of that with the most.
  [[nodiscard]] Rank least_ranks() const { return least_; }
  [[nodiscard]] Rank most_ranks() const { return most_; }
  /// Whether shares for as many leaders as the smallest node has ranks keep the others busy enough for long vectors. A plan of all
  /// ranks divides those of unlike nodes better.
  [[nodiscard]] bool share_long_vectors() const { return least_ > 1 && most_ <= kMostUnlike * least_; }
  [[nodiscard]] Rank rank_of(Rank of_node, Rank of_local_rank) const {
    return ranks[static_cast<std::size_t>(first[static_cast<std::size_t>(of_node)] + of_local_rank)];
  }

  /// Groups the ranks, with the same result on all of them. Returns nothing if calls should use one plan of all
  /// ranks, or shared memory only:
  /// - there is only one node;
  /// - the nodes have one rank each, or one has more than SharedMemoryBackend::kMostRanks;
  /// - the ranks of one server of the topology do not share memory;
  /// - the user named a transport, or a plan of all ranks for every size, or a reduction in rank order.
  static std::optional<NodeGroups> of(const Design& design, const Config& config,
                                      const std::vector<ProcessInfo>& processes, Rank rank);

 private:
  static constexpr Rank kMostUnlike = 4;
  Rank least_ = 0, most_ = 0;
};

/// The topology between the nodes, without the ranks inside them.
Topology topology_of_nodes(const Design& design, const NodeGroups& nodes);

/// What runs between the nodes, for the ranks that have this rank's local rank on all nodes. Where a node has no such rank the
/// programs are empty.
struct PlansBetween {
  std::vector<Design::Choice> choices;  ///< by the bytes that a node sends at once
  /// Up to this size of a vector, all of it for every rank takes hardly longer between the nodes than a share for each. 0: never.
  std::uint64_t whole_up_to_bytes = 0;
  /// Up to this size one rank of a node sends for all of them, since a message costs more than a step in memory.
  std::uint64_t one_leader_up_to_bytes = 0;
};

/// Returns the cheapest plans between the nodes over `medium`. Their programs use ranks of the communicator, so that a team can
/// run them along with other programs.
///
/// Errors   those of cost::select(), the same on all ranks.
Result<PlansBetween> choose_plans_between(const Topology& wiring, const NodeGroups& nodes,
                                          cost::Medium medium,
                                          const std::optional<cost::Constants>& network = {});

}  // namespace hips::comm
