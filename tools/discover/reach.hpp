#pragma once

#include <span>
#include <vector>

#include "lib/comm/setup/bootstrap.hpp"
#include "tools/discover/view.hpp"
#include "tools/doctor/probe.hpp"
#include "topology/discover/observation.hpp"

namespace hips::discover {

/// Sends datagrams along `paths` in both directions, and returns on all ranks which paths work, with the
/// number of hops. Omits paths with a NIC that has no IP address. Returns nothing if no packet arrives at
/// all, since a firewall is more likely than a network without any link.
///
/// Cost     up to four rounds, one second in all; two rounds if every NIC of a subnet is heard at once.
/// Threads  collective: all ranks of the bootstrap call it with the same arguments.
/// Errors   those of the bootstrap.
Result<std::vector<topology::SeenPath>> try_by_packets(comm::Bootstrap& bootstrap,
                                                       std::span<const RankView> views,
                                                       std::span<const JobServer> servers,
                                                       std::span<const topology::SeenPath> paths);

/// The paths between RDMA ports of one subnet, for doctor::probe().
std::vector<doctor::ProbePath> rdma_paths(std::span<const RankView> views, std::span<const JobServer> servers,
                                          std::span<const topology::SeenPath> paths);

/// Adds the doctor's trials to `paths`. They override the results of packets, because RDMA has to pass.
void add_trials(std::span<const JobServer> servers, std::span<const doctor::Trial> trials,
                std::vector<topology::SeenPath>& paths);

}  // namespace hips::discover
