#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "lib/plan/check/check_layout.hpp"
#include "lib/plan/check/check_messages.hpp"

namespace hips::plan {

/// The number of a segment of a step, in the order of steps and segments.
using NodeIdx = std::uint32_t;
inline constexpr NodeIdx kNoNode = std::numeric_limits<NodeIdx>::max();

enum class EdgeKind : std::uint8_t {
  kAfter,    ///< the first has finished (a send: locally completed) before the second starts
  kChannel,  ///< two sends of one channel: the first has started before the second starts
  kMessage,  ///< the second receives what the first, a send, sends
  kCredit,   ///< the second, a send, uses the slot that the first returns
};

/// The happens-before order of a plan: which segments wait for which.
///
/// A node has two moments, start and finish. They differ for sends only, whose source is read in between.
/// Edges end at a start. Edges of kind kAfter begin at a finish, others at a start (of a send) or at the only
/// moment of a reduction or copy. Only kAfter edges leave the finish of a send, so one node per segment is
/// enough.
///
/// Steps over blocks without elements have no segment and order nothing, not even transitively.
class HappensBefore {
 public:
  struct Options {
    std::int32_t segments = 1;
    std::int32_t credits = 1;
  };
  struct Edge {
    NodeIdx to;
    EdgeKind kind;
  };

  /// The limits of the constructor, which needs some 40 bytes for each.
  static constexpr std::int64_t kMostNodes = std::int64_t{1} << 27;
  static constexpr std::int64_t kMostDependencies = std::int64_t{1} << 28;
  static bool fits(const Plan& plan, const CheckLayout& layout, std::int32_t segments);

  /// `messages` must be free of findings.
  HappensBefore(const Plan& plan, const StepTable& table, const Messages& messages, const CheckLayout& layout,
                const Options& options);

  [[nodiscard]] NodeIdx num_nodes() const { return static_cast<NodeIdx>(step_of_.size()); }
  [[nodiscard]] StepIdx step_of(NodeIdx node) const { return step_of_[node]; }
  [[nodiscard]] std::int32_t segment_of(NodeIdx node) const {
    return static_cast<std::int32_t>(node - first_node_[step_of_[node]]);
  }
  [[nodiscard]] NodeIdx first_node(StepIdx step) const { return first_node_[step]; }
  [[nodiscard]] NodeIdx end_node(StepIdx step) const { return first_node_[step + 1]; }
  /// Elements of a segment, counted from the start of its step's range.
  [[nodiscard]] ElementRange segment_extent(NodeIdx node) const;

  [[nodiscard]] std::size_t num_edges(NodeIdx node) const {
    return first_edge_[node + 1] - first_edge_[node];
  }
  [[nodiscard]] Edge edge(NodeIdx node, std::size_t i) const {
    const std::uint32_t packed = edges_[first_edge_[node] + i];
    return {packed & kNodeMask, static_cast<EdgeKind>(packed >> kKindShift)};
  }

  /// The nodes in an order that respects all edges; shorter than num_nodes() if there is a cycle.
  [[nodiscard]] std::vector<NodeIdx> topological_order() const;

  /// A shortest cycle, in which each node waits for the one before it; empty if there is none. `work` limits
  /// the visited edges; beyond it, the shortest cycle found so far.
  struct CycleStep {
    NodeIdx node;
    EdgeKind waits_by;  ///< the edge from the node before it
  };
  [[nodiscard]] std::vector<CycleStep> shortest_cycle(std::int64_t work) const;

 private:
  static constexpr std::uint32_t kKindShift = 30;
  static constexpr std::uint32_t kNodeMask = (1u << kKindShift) - 1;

  static std::int64_t segment_elements(const Plan& plan, const CheckLayout& layout, std::int32_t segments);
  template <typename Visit>
  void for_each_edge(const Plan& plan, const Messages& messages, std::int32_t credits, Visit&& visit) const;
  template <typename Visit>
  void visit_dependency(const Program& program, const Step& before, StepIdx before_idx, const Step& step,
                        StepIdx step_idx, Visit&& visit) const;

  const CheckLayout& layout_;
  const StepTable& table_;
  std::int64_t segment_elements_;
  std::vector<NodeIdx> first_node_;  ///< by step
  std::vector<StepIdx> step_of_;
  std::vector<std::size_t> first_edge_;
  std::vector<std::uint32_t> edges_;
};

}  // namespace hips::plan
