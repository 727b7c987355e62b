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

/// What a communicator's team is to be made of.
struct TeamOrder {
  const Config& config;
  Clock* clock = nullptr;
  Rank rank = -1;
  std::uint64_t id = 0;
  const Topology& topology;  ///< whose rails the programs speak of
  const std::vector<ProcessInfo>& processes;
  const std::vector<Design::Choice>& choices;  ///< the team's programs, in this order
  std::function<void(const Status&)> on_error;
};

struct MadeTeam {
  std::shared_ptr<ProcessEngine> engine;
  std::unique_ptr<exec::Team> team;
  std::vector<std::string_view> transports;  ///< that reach the others, by name
};

/// Makes the engine of this process, unless it is there, and a team on it, which reaches every rank by the
/// best transport between the two.
///
/// Errors   those of the transports and of Team::create().
Result<MadeTeam> make_team(const TeamOrder& order);

/// "recursive doubling up to 65536 bytes, else HiPS, mesh"
std::string describe_choices(const std::vector<Design::Choice>& choices);
/// "emulated: 9 servers on 1 host", "not emulated"
std::string describe_emulation(const Topology& topology, const std::vector<ProcessInfo>& processes);

}  // namespace hips::comm
