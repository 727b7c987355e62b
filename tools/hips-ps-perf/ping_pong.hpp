#pragma once

#include <optional>

#include <hips/communicator.hpp>

namespace hips::ps_perf {

/// The median round trip, in us, of 8 bytes over a blocking TCP connection between rank 0 and `peer`; what sockets take at the
/// least. Collective; on rank 0. Empty: rank 0 reaches no address of the peer.
std::optional<double> ping_pong_us(Communicator& comm, int peer, int iterations);

}  // namespace hips::ps_perf
