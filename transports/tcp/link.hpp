#pragma once

#include <cstdint>

#include "lib/base/os/socket.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips::tcp {

/// How the kernel is to treat a connection.
struct LinkOptions {
  std::int64_t dead_after_ns = 0;
  std::uint32_t socket_buffer_bytes = 0;  ///< 0: the kernel finds out
};

/// Sets up a connection that was accepted or is about to be dialled.
void set_up_link(int fd, const LinkOptions& options);

/// Then, as soon as its peer is known, best before the handshake: between two ends on this host no link is
/// shared and nothing is lost, so that no congestion control has anything to find out. Those that pace what
/// is sent (BBR) take the speed at which the peer reads for the path's: 2 ranks over loopback were up to
/// twice as slow by them, some runs from the first call to the last. Between hosts the system's choice stays.
void choose_congestion_control(int fd, const SocketAddress& peer);

/// Begins to connect from a NIC's address, without waiting: EPOLLOUT says when it is done, connect_error()
/// how. A host that does not answer fails after twice options.dead_after_ns or a little later.
///
/// Errors   kSystem, kPeerLost: the kernel refuses at once; names both addresses.
Result<UniqueFd> dial(const SocketAddress& from, const SocketAddress& to, const LinkOptions& options);

}  // namespace hips::tcp
