#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/cost/estimate.hpp"
#include "lib/plan/check/check.hpp"
#include "lib/plan/plan_builder.hpp"
#include "tools/hips/compare/plan_cost.hpp"
#include "topology/formats/topology_file.hpp"

/// What Python holds of topologies and plans. Errors are thrown as hips::Error, which the module translates.
namespace hips::python {

using TopologyPointer = std::shared_ptr<const topology::TopologyFile>;

/// A spec, or a topology file.
TopologyPointer load_topology(const std::string& spec);

/// The parts of a plan that the caller names; empty and 0: chosen by size, as for a call between nodes.
struct PlanName {
  std::string algorithm, pattern;
  std::int32_t num_leaders = 0, num_rings = 0;
};

/// A plan on a topology. Programs are made when they are asked for.
class PlanObject {
 public:
  /// The plan of that name, or the one for vectors of `bytes`.
  static PlanObject make(const TopologyPointer& topology, const PlanName& name, std::uint64_t bytes);
  /// A stored plan: JSON, or XML of MSCCL. Without a topology: the one that the file names.
  static PlanObject read(const std::string& path, TopologyPointer topology);

  [[nodiscard]] const TopologyPointer& topology() const { return topology_; }
  [[nodiscard]] const PlanShape& shape() const { return builder_->shape(); }
  [[nodiscard]] const std::string& selected() const { return selected_; }  ///< "" if the plan was named
  [[nodiscard]] Program program(Rank rank) const;
  [[nodiscard]] std::string text(std::optional<Rank> rank, std::uint64_t bytes) const;
  [[nodiscard]] cost::Cost cost(std::uint64_t bytes) const;
  [[nodiscard]] plan::CheckReport check(plan::CheckOptions options) const;
  [[nodiscard]] std::string json() const;
  [[nodiscard]] std::string html(std::uint64_t bytes) const;

 private:
  PlanObject(TopologyPointer topology, std::unique_ptr<PlanBuilder> builder, std::string selected)
      : topology_(std::move(topology)), builder_(std::move(builder)), selected_(std::move(selected)) {}

  TopologyPointer topology_;
  std::shared_ptr<const PlanBuilder> builder_;
  std::string selected_;
};

/// The costs of a topology's plans for each size, as `hips compare`.
compare::Comparison compare_plans(const topology::TopologyFile& file, const std::string& bytes, const std::string& algorithms, bool baseline);

}  // namespace hips::python
