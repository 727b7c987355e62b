#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

namespace hips::cli {

/// The plan that a command line names, as far as it does.
struct NamedPlan {
  std::string algorithm, patterns;
  std::optional<std::int32_t> num_leaders, num_rings;
};

/// A plan's builder, and how it came to be this one.
struct ChosenPlan {
  std::unique_ptr<PlanBuilder> builder;
  std::string selected;          ///< name in the selection; "" where somebody named a plan
  std::string selected_on_host;  ///< the same for ranks that share a host
  std::string table;             ///< HIPS_SELECT_TABLE, where that decided; "" else
};

/// The plan that the caller or the environment names, else the one that a call of `bytes` gets: by
/// HIPS_SELECT_TABLE, else by the model, as a communicator chooses.
///
/// Errors   (thrown) those of plan::make_builder(), plan::parse_patterns() and cost::SelectTable::read().
ChosenPlan choose_plan(const Topology& topology, const NamedPlan& named, std::uint64_t bytes);

}  // namespace hips::cli
