#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hips/topology.hpp>

#include "topology/formats/topology_file.hpp"
#include "topology/health/health.hpp"

namespace hips::health {

/// The size of the allreduce whose time is predicted.
inline constexpr std::uint64_t kBytes = std::uint64_t{16} << 20U;

/// Larger topologies are not examined: their cables would take too much memory and time.
inline constexpr std::int64_t kMostCables = 100'000;

/// The predicted time of an allreduce of kBytes between servers, one rank on each, by the plan that HiPS chooses. None for
/// one server, for more than 2048, or if no plan fits.
///
/// Units    seconds.
std::optional<double> predicted_seconds(const Topology& topology);

/// What a slow cable costs.
struct SlowCable {
  std::size_t cable = 0;
  double usual_bytes_per_s = 0;
  double seconds = 0;  ///< if the cable had the rate of its like
};

/// Predicted times of an allreduce of kBytes.
struct Times {
  std::optional<double> all;   ///< over all servers
  std::optional<double> leaf;  ///< over those of one leaf
  std::size_t leaf_node = 0, leaf_servers = 0;
  std::vector<SlowCable> slow;  ///< those that cost most, at most 3
};

Times predict(const topology::TopologyFile& file, const topology::Cabling& cabling,
              const topology::Health& health);

}  // namespace hips::health
