#pragma once

#include <string>
#include <vector>

#include <hips/status.hpp>

#include "tools/doctor/node.hpp"

namespace hips::doctor {

/// How HiPS would use a port, or why not.
struct PortUse {
  std::string device;
  std::int32_t port = 1;
  std::string name;         ///< "mlx5_0:1"
  std::vector<Rail> rails;  ///< rails that it serves, several if HIPS_IB_HCA repeats it; empty: not used
  std::optional<verbs::GidChoice> gid;
  std::string why_not;  ///< why it is not used; else empty
};

/// The ports of a node, filtered by HIPS_IB_HCA and HIPS_IB_GID_INDEX.
struct RailChoice {
  std::vector<PortUse> ports;        ///< all ports of the node
  std::vector<std::size_t> by_rail;  ///< index in `ports`
  Status problem;                    ///< the error of verbs::find_ports(); ok if it finds ports
};

/// Chooses like verbs::find_ports(), but from facts, so that tests need no device.
///
/// Threads  pure; any thread.
RailChoice choose_rails(const NodeFacts& node, const RdmaConfig& config);

}  // namespace hips::doctor
