#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "transports/verbs/budget.hpp"
#include "transports/verbs/gid.hpp"
#include "transports/verbs/handles.hpp"
#include "transports/verbs/verbs.hpp"

namespace hips::verbs {

/// Opens the devices of this node, sorted by name.
///
/// Errors   kUnsupported: no device, or its kernel modules are missing; the message has a remedy.
Result<std::vector<ContextHandle>> open_devices();

/// "mlx5_0:1"
std::string port_name(ibv_context& context, std::uint8_t port);

/// The GIDs of a port, without zero entries.
std::vector<Gid> gid_table(ibv_context& context, std::uint8_t port, bool iwarp);

/// Properties of a device and one of its ports.
struct PortFacts {
  DeviceLimits limits;
  std::uint8_t link_layer = 0;  ///< IBV_LINK_LAYER_*
  std::uint8_t active_mtu = 0;  ///< IBV_MTU_*
  std::uint16_t lid = 0;
  bool active = false;
  bool endless_retry = false;  ///< retry count 7 means infinite
  bool iwarp = false;          ///< no immediates, connections by rdma_cm only
  double bandwidth_bytes_per_s = 0;
  std::string state;  ///< "PORT_DOWN"
};

/// Errors   kSystem: the device does not answer.
Result<PortFacts> query_port(ibv_context& context, std::uint8_t port);

/// 1024 for IBV_MTU_1024.
constexpr std::uint32_t mtu_bytes(std::uint8_t mtu) {
  return 128U << mtu;
}

}  // namespace hips::verbs
