#pragma once

#include <memory>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/plan/plan_builder.hpp"

/// The functions behind the registry. Each algorithm is a file that defines one of them.
namespace hips::plan {

using MadeBuilder = Result<std::unique_ptr<PlanBuilder>>;

MadeBuilder make_hips(const Topology& topology, const PlanRequest& request);
MadeBuilder make_flat_ps(const Topology& topology, const PlanRequest& request);
MadeBuilder make_flat_mesh(const Topology& topology, const PlanRequest& request);
MadeBuilder make_flat_ring(const Topology& topology, const PlanRequest& request);
MadeBuilder make_recursive_doubling(const Topology& topology, const PlanRequest& request);
MadeBuilder make_recursive_multiplying(const Topology& topology, const PlanRequest& request);
MadeBuilder make_halving_doubling(const Topology& topology, const PlanRequest& request);
MadeBuilder make_binomial_tree(const Topology& topology, const PlanRequest& request);
MadeBuilder make_double_tree(const Topology& topology, const PlanRequest& request);
MadeBuilder make_bucket(const Topology& topology, const PlanRequest& request);
MadeBuilder make_swing(const Topology& topology, const PlanRequest& request);
MadeBuilder make_bine(const Topology& topology, const PlanRequest& request);
MadeBuilder make_trees(const Topology& topology, const PlanRequest& request);

}  // namespace hips::plan
