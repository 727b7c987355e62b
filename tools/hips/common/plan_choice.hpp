#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/plan/plan_builder.hpp"

namespace hips::cli {

/// The parts of a plan that a command line names.
struct NamedPlan {
  std::string algorithm, patterns;
  std::optional<std::int32_t> num_leaders, num_rings;
};

/// A plan's builder, and why this plan was chosen.
struct PlanChoice {
  std::unique_ptr<PlanBuilder> builder;
  std::string selected{};          ///< name in the selection; "" if the plan was named explicitly
  std::string selected_on_node{};  ///< the same for ranks of one node
  std::string setting{};  ///< the variable that decided, such as HIPS_REPRODUCIBLE=any; "" if the model did
  bool for_all_sizes = false;  ///< `setting` decides for all sizes
};

/// The topology that the plan of HIPS_PLAN_FILE was made for; "" if it has none or `named` overrides the
/// file.
///
/// Errors   (thrown) those of plan::read_plan_file().
std::string topology_of_plan_file(const NamedPlan& named);

/// Chooses the plan as a communicator does for a call of `bytes`: the one that the command line or the
/// environment names, else that of HIPS_PLAN_FILE, HIPS_REPRODUCIBLE=any or HIPS_SELECT_TABLE, else the
/// model's. The command line overrides HIPS_PLAN_FILE and HIPS_REPRODUCIBLE; variables that contradict them
/// are an error, as in a job.
///
/// Errors   (thrown) kInvalidArgument: contradicting variables; a plan file that is not proved.
///          kUnsupported: a plan file for another number of ranks. Those of plan::make_builder(), plan::parse_patterns(),
///          plan::read_plan_file() and cost::SelectTable::read().
PlanChoice choose_plan(const Topology& topology, const NamedPlan& named, std::uint64_t bytes);

}  // namespace hips::cli
