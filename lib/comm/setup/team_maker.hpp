#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hips/status.hpp>
#include <hips/topology.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/setup/design.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/exec/team.hpp"

namespace hips::comm {

/// The inputs of make_team().
struct TeamOrder {
  const Config& config;
  Clock* clock = nullptr;
  Rank rank = -1;
  std::uint64_t id = 0;
  const Topology& topology;  ///< defines the rails in the programs
  const std::vector<ProcessInfo>& processes;
  /// By rank and rail, its NIC; null: rail n is NIC n, and rails beyond the last NIC start over.
  const std::vector<std::vector<std::uint32_t>>* nics = nullptr;
  const std::vector<Design::Choice>& choices;  ///< the team's programs, in this order
  std::function<void(const Status&)> on_error;
  bool traced = true;  ///< its operations are in the trace of the process
};

struct MadeTeam {
  std::shared_ptr<ProcessEngine> engine;
  std::unique_ptr<exec::Team> team;
  std::vector<std::string_view> transports;  ///< names of the transports in use
};

/// Creates a team on the engine of this process; creates the engine if there is none. The team reaches each rank
/// over the best transport between the two.
///
/// Errors   those of the transports and of Team::create().
Result<MadeTeam> make_team(const TeamOrder& order);

/// "recursive doubling up to 65536 bytes, else HiPS, mesh"
std::string describe_choices(const std::vector<Design::Choice>& choices);
/// "emulated: 9 servers on 1 node", "not emulated"; without a named topology or a stored plan "3 ranks on 2 nodes"
std::string describe_emulation(const Design& design, const std::vector<ProcessInfo>& processes);

}  // namespace hips::comm
