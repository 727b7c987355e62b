#pragma once

#include <string>
#include <vector>

#include <hips/status.hpp>

#include "tools/doctor/host.hpp"

namespace hips::doctor {

/// How HiPS would use a port, or why it would not.
struct PortUse {
  std::string device;
  std::int32_t port = 1;
  std::string name;         ///< "mlx5_0:1"
  std::vector<Rail> rails;  ///< one port may serve several; empty: not used
  std::optional<verbs::GidChoice> gid;
  std::string why_not;  ///< where it is not used
};

/// What a host has to offer, after HIPS_IB_HCA and HIPS_IB_GID_INDEX.
struct RailChoice {
  std::vector<PortUse> ports;        ///< all ports of the host
  std::vector<std::size_t> by_rail;  ///< index in `ports`
  Status problem;                    ///< what verbs::find_ports() would say; ok where it finds some
};

/// Chooses as verbs::find_ports() does, from facts, so that a test needs no device.
///
/// Threads  pure; any thread.
RailChoice choose_rails(const Host& host, const RdmaConfig& config);

}  // namespace hips::doctor
