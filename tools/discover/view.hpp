#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/config.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/wire.hpp"
#include "tools/doctor/host.hpp"
#include "tools/doctor/rails.hpp"
#include "topology/discover/observation.hpp"

namespace hips::discover {

/// A NIC that HiPS would use.
struct JobNic {
  topology::SeenNic seen{};
  std::string interface {};  ///< "eth1"; empty where there is none
  bool rdma = false;
  friend bool operator==(const JobNic& a, const JobNic& b) {
    return a.seen.name == b.seen.name && a.seen.address == b.seen.address && a.seen.subnet == b.seen.subnet &&
           a.seen.bandwidth_bytes_per_s == b.seen.bandwidth_bytes_per_s && a.interface == b.interface &&
           a.rdma == b.rdma;
  }
};

/// What one rank of a job tells all others.
struct RankView {
  Rank rank = 0;
  std::string host, host_key;  ///< as doctor::Host
  std::vector<JobNic> nics;    ///< in the order of rails
  friend bool operator==(const RankView&, const RankView&) = default;
};

/// The NICs of this host in the order in which HiPS uses them: RDMA ports, after HIPS_IB_HCA; without them,
/// or with HIPS_TRANSPORT=tcp, the interfaces that HIPS_SOCKET_IFNAME lets pass.
///
/// Errors   kInvalidArgument: one of these variables is wrong.
Result<RankView> view_of(Rank rank, const doctor::Host& host, const doctor::RailChoice& rails,
                         const Config& config);

/// "10.0.1.0/24" of 10.0.1.7 and 24; empty where the text is no address.
std::string subnet_of(const std::string& address, std::uint32_t prefix_bits);

comm::Blob encode(const RankView& view);
/// Errors   kMismatch: the bytes are no view; another version of hips made them.
Result<RankView> decode_view(std::span<const std::byte> bytes);

/// A server of the job: the ranks that share a host. The first speaks for it.
struct JobServer {
  std::vector<Rank> ranks;
  [[nodiscard]] Rank speaker() const { return ranks.front(); }
};

/// By their first ranks.
std::vector<JobServer> servers_of(std::span<const RankView> views);

/// Servers and NICs without ways.
topology::Observation observation_of(std::span<const RankView> views, std::span<const JobServer> servers);

/// Which NICs of different servers try each other: those of one subnet, and those of one number, which may
/// have routers between them. Of many only some, so that every one is tried by a few: the number of tries
/// grows with N log N above kMostForAllPairs.
///
/// Threads  pure; the same on all ranks. `reached` and `hops` are not set.
std::vector<topology::SeenPath> ways_to_try(const topology::Observation& seen);
inline constexpr std::size_t kMostForAllPairs = 64;

}  // namespace hips::discover
