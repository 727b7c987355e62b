#pragma once

#include <cstdint>

#include "lib/base/os/socket.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips::tcp {

/// Settings of a connection.
struct LinkOptions {
  std::int64_t dead_after_ns = 0;
  std::uint32_t socket_buffer_bytes = 0;  ///< 0: chosen by the kernel
};

/// Sets the options of a socket that was accepted or is about to connect.
void set_up_link(int fd, const LinkOptions& options);

/// Turns pacing off for a peer on this node. Call it once the peer is known, best before the handshake.
///
/// Within a node no link is shared and nothing is lost, so congestion control has nothing to adapt to. A pacing
/// one (BBR) mistakes the speed at which the peer reads for that of the path: 2 ranks over loopback were up to
/// twice as slow, in some runs from the first call to the last. Between nodes the system's choice stays.
void choose_congestion_control(int fd, const SocketAddress& peer);

/// Starts to connect from a NIC's address, without waiting. EPOLLOUT reports the end, connect_error() the
/// result. If the node does not answer, the attempt fails after about twice options.dead_after_ns.
///
/// Errors   kSystem, kPeerLost: the kernel rejects it at once; names both addresses.
Result<UniqueFd> dial(const SocketAddress& from, const SocketAddress& to, const LinkOptions& options);

}  // namespace hips::tcp
