#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/config/config.hpp"
#include "lib/comm/communicator_options.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/comm/setup/spare_note.hpp"
#include "lib/comm/setup/wiring.hpp"
#include "lib/cost/constants.hpp"
#include "lib/cost/select.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::comm {

/// The data of one rank in the first exchange.
struct Announcement {
  std::uint32_t version = kWireVersion;
  Status status;
  ProcessInfo process;
  std::uint64_t id = 0;                    ///< a proposal; that of rank 0 becomes the communicator's id
  std::optional<cost::Constants> network;  ///< that this process knows; that of the most nodes counts for all
  std::vector<SpareNote> spares;           ///< that this rank has
  Terms terms;
};

Blob encode(const Announcement& announcement);
void put_constants(ByteWriter& writer, const cost::Constants& constants);
cost::Constants get_constants(ByteReader& reader);

/// What a rank derives from its options before it contacts the others. Every error in the options is found here.
struct Design {
  bool named = false;  ///< the user named a topology or a plan; otherwise HiPS chooses
  bool topology_named = false;
  Topology topology;
  /// A plan and this rank's program of it. A call uses the first choice whose limit its vector does not exceed.
  struct Choice {
    std::shared_ptr<const PlanShape> shape{};
    std::function<Program()> program{};  ///< makes it
    std::uint64_t up_to_bytes = UINT64_MAX;
    std::shared_ptr<const PlanBuilder> builder{};  ///< builds the programs of the other ranks
    bool stored = false;                           ///< from a file: plans pruned from it must be checked
    /// The user named no plan for these sizes, so a call may use another path. A Design has no plan for them yet.
    bool automatic = false;
  };
  std::vector<Choice> choices;             ///< ascending; the last has no limit; empty if no plan is named
  std::optional<cost::Constants> network;  ///< measured between the nodes
  std::optional<NodeWiring> wiring;        ///< set if the user named no topology and the NICs show one
  std::string cost_comparison;             ///< compares a plan that is not the cheapest with the usual one
  Terms terms;
};

/// Makes all decisions that need no communication.
///
/// Errors   kInvalidArgument, kUnsupported, kOutOfMemory: says which option is wrong and what would be right.
Result<Design> make_design(const CommunicatorOptions& options, const Config& config, Rank rank, Rank size);

/// Replaces the topology of a design for which the user named none by the one that the NICs show (wiring_of()), unless a stored
/// plan tells another. `processes` are those of all ranks; the same outcome on all ranks. Throws Error where this rank alone has no
/// memory or cannot read its table any more.
Design with_wiring(Design design, const CommunicatorOptions& options, const Config& config, Rank rank,
                   const std::vector<ProcessInfo>& processes);

/// Returns the plans of a PlanBackend: the named ones and, for all other sizes, the cheapest ones over
/// `medium`.
///
/// Errors   those of cost::select(), the same on all ranks.
Result<std::vector<Design::Choice>> choose_plans(const Design& design, Rank rank, cost::Medium medium);

/// What the announcements of all ranks have in common.
struct Agreed {
  std::uint64_t id = 0;
  std::vector<ProcessInfo> processes;
  std::optional<cost::Constants> network;
  std::uint64_t digest = 0;            ///< of the ranks and their terms
  std::optional<std::uint64_t> spare;  ///< id of a spare communicator of theirs, to be used again
};

/// Compares the announcements of all ranks. The outcome is the same on all ranks, because all read the same
/// announcements.
///
/// Errors   the first failed status of a rank. kMismatch: the first term that differs.
Result<Agreed> compare(const std::vector<Blob>& announcements);

}  // namespace hips::comm
