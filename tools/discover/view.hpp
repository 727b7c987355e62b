#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/control/wire.hpp"
#include "tools/doctor/node.hpp"
#include "tools/doctor/rails.hpp"
#include "topology/cabling/lldp_neighbours.hpp"
#include "topology/discover/observation.hpp"

namespace hips::discover {

/// A NIC that HiPS would use.
struct JobNic {
  topology::SeenNic seen{};
  std::string interface {};  ///< "eth1"; empty if there is none
  bool rdma = false;
  friend bool operator==(const JobNic& a, const JobNic& b) {
    return a.seen.name == b.seen.name && a.seen.address == b.seen.address && a.seen.subnet == b.seen.subnet &&
           a.seen.bandwidth_bytes_per_s == b.seen.bandwidth_bytes_per_s && a.interface == b.interface &&
           a.rdma == b.rdma;
  }
};

/// The NICs that one rank of a job sees, which all ranks exchange.
struct RankView {
  Rank rank = 0;
  std::string host, node_key;  ///< name and key of doctor::NodeFacts
  std::vector<JobNic> nics;    ///< in the order of rails
  /// What lldpd has heard on these NICs, whose names are the interfaces; empty without lldpd.
  std::vector<topology::LldpNeighbour> neighbours{};
  friend bool operator==(const RankView&, const RankView&) = default;
};

/// The NICs of this node in the order in which HiPS uses them: the RDMA ports that HIPS_IB_HCA selects;
/// without RDMA ports, or with HIPS_TRANSPORT=tcp, the interfaces that HIPS_SOCKET_IFNAME selects.
///
/// Errors   kInvalidArgument: one of these variables is invalid.
Result<RankView> view_of(Rank rank, const doctor::NodeFacts& node, const doctor::RailChoice& rails,
                         const Config& config);

/// The neighbours at interfaces of these NICs, called like the NICs. Those of other protocols are left out.
std::vector<topology::LldpNeighbour> neighbours_of(std::span<const JobNic> nics,
                                                   std::vector<topology::LldpNeighbour> heard);

/// The subnet of an address: "10.0.1.0/24" for 10.0.1.7 and 24; "" if the text is no address.
std::string subnet_of(const std::string& address, std::uint32_t prefix_bits);

comm::Blob encode(const RankView& view);
/// Errors   kMismatch: malformed bytes, made by another version of hips.
Result<RankView> decode_view(std::span<const std::byte> bytes);

/// A server of the job: the ranks of one node. The first is its leader, which exchanges the packets.
struct JobServer {
  std::vector<Rank> ranks;
  [[nodiscard]] Rank leader() const { return ranks.front(); }
};

/// The servers in the order of their first ranks.
std::vector<JobServer> servers_of(std::span<const RankView> views);

/// Servers and NICs, without paths.
topology::Observation observation_of(std::span<const RankView> views, std::span<const JobServer> servers);

/// The pairs of NICs of different servers to try: NICs of one subnet, and NICs of equal number, which may
/// have routers between them. Above kMostForAllPairs NICs each tries only some, N log N in all.
///
/// Threads  pure; the same on all ranks. `reached` and `hops` are not set.
std::vector<topology::SeenPath> paths_to_try(const topology::Observation& seen);
inline constexpr std::size_t kMostForAllPairs = 64;

}  // namespace hips::discover
