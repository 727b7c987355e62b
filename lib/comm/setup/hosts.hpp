#pragma once

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

/// A communicator's ranks by the memory that they share, where that is the memory of several hosts and every
/// host has as many ranks, more than one. Emulated servers count as hosts: only their ranks share then.
struct Hosts {
  Rank num_hosts = 0;
  Rank per_host = 0;        ///< m: ranks of each
  Rank host = -1;           ///< this rank's
  Rank local = -1;          ///< and its number there, 0 to m-1
  std::vector<Rank> ranks;  ///< by host, then by number there

  [[nodiscard]] Rank rank_of(Rank of_host, Rank number) const {
    return ranks[static_cast<std::size_t>(of_host * per_host + number)];
  }

  /// Nothing where a call goes by one plan of all ranks, or by memory alone: hosts have different numbers of
  /// ranks, one each, or more than NodeCommunicator::kMostRanks; there is one host; the servers of the
  /// topology are no hosts, as their ranks share no memory; somebody names a transport, or a plan of all
  /// ranks for every size, or wants operands folded by rank. The same answer on all ranks.
  static std::optional<Hosts> of(const Design& design, const Config& config,
                                 const std::vector<ProcessInfo>& processes, Rank rank);
};

/// The wiring of the hosts, without the ranks inside them.
Topology topology_of_hosts(const Design& design, const Hosts& hosts);

/// The plans between hosts: those that are cheapest for their wiring over `medium`, for the ranks of this
/// rank's number on all hosts. Programs name ranks of the communicator, so that a team can run them beside
/// others.
///
/// Errors   those of cost::select(), the same on all ranks.
Result<std::vector<Design::Choice>> choose_plans_between(const Topology& wiring, const Hosts& hosts,
                                                         cost::Medium medium);

}  // namespace hips::comm
