#pragma once

#include <span>
#include <vector>

#include "lib/comm/bootstrap.hpp"
#include "tools/discover/view.hpp"
#include "tools/doctor/probe.hpp"
#include "topology/discover/observation.hpp"

namespace hips::discover {

/// Sends datagrams along `ways`, in both directions, and tells all ranks which arrived, over how many hops.
/// Ways for which a NIC has no IP address are left out. Where not one packet arrives there is no answer: a
/// firewall, rather than no network at all.
///
/// Cost     up to four rounds, a second in all; two where every NIC of a subnet is heard at once.
/// Threads  collective: all ranks of the bootstrap call it with the same arguments.
/// Errors   those of the bootstrap.
Result<std::vector<topology::SeenPath>> try_by_packets(comm::Bootstrap& bootstrap,
                                                       std::span<const RankView> views,
                                                       std::span<const JobServer> servers,
                                                       std::span<const topology::SeenPath> ways);

/// Ways between RDMA ports of one subnet, as the doctor tries them.
std::vector<doctor::Way> rdma_ways(std::span<const RankView> views, std::span<const JobServer> servers,
                                   std::span<const topology::SeenPath> ways);

/// What the doctor's trials say of ways stands above what packets say: it is RDMA that has to pass.
void add_trials(std::span<const JobServer> servers, std::span<const doctor::Trial> trials,
                std::vector<topology::SeenPath>& ways);

}  // namespace hips::discover
