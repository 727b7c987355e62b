#pragma once

#include <memory>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/config/config.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/cost/select.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::comm {

/// What this rank brings to the first exchange.
struct Announcement {
  std::uint32_t version = kWireVersion;
  Status status;
  ProcessInfo process;
  std::uint64_t id = 0;  ///< rank 0's becomes the communicator's
  Terms terms;
};

Blob encode(const Announcement& announcement);

/// What all ranks make of their options, before they meet: what can be wrong with it is known here.
struct Design {
  bool named = false;  ///< somebody asked for a topology or a plan; else HiPS chooses
  bool topology_named = false;
  Topology topology;
  /// A plan and this rank's program of it; the first that a vector is not too large for carries the call.
  struct Choice {
    std::shared_ptr<const PlanShape> shape{};
    std::shared_ptr<const Program> program{};
    std::uint64_t up_to_bytes = UINT64_MAX;
    std::shared_ptr<const PlanBuilder> builder{};  ///< of the programs of the other ranks
    bool stored = false;                           ///< from a file: what is cut out of it has to be proved
    /// Nobody chose the plan for these sizes, so that a call need not go by it. In a Design it is not there.
    bool automatic = false;
  };
  std::vector<Choice> choices;  ///< ascending; the last has no limit; empty where no plan is named
  std::string price;            ///< of a plan that is not the cheapest: what it costs beside that one
  Terms terms;
};

/// Everything that one rank can decide alone.
///
/// Errors   kInvalidArgument, kUnsupported, kOutOfMemory: what is wrong with the options, with what is right.
Result<Design> make_design(const CommunicatorOptions& options, const Config& config, Rank rank, Rank size);

/// The plans of a communicator of plans: those that are named, and for all other sizes those that are
/// cheapest over `medium`.
///
/// Errors   those of cost::select(), the same on all ranks.
Result<std::vector<Design::Choice>> choose_plans(const Design& design, Rank rank, cost::Medium medium);

/// Reads the announcements of all ranks and finds the first thing that is wrong with them as a whole: the
/// same on every rank, because all read the same. `id` becomes the communicator's.
Result<std::vector<ProcessInfo>> compare(const std::vector<Blob>& announcements, std::uint64_t& id);

}  // namespace hips::comm
