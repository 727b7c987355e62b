#pragma once

#include <cstdint>

#include "lib/base/result.hpp"
#include "lib/base/socket.hpp"
#include "lib/base/unique_fd.hpp"

namespace hips::tcp {

/// How the kernel is to treat a connection.
struct LinkOptions {
  std::int64_t dead_after_ns = 0;
  std::uint32_t socket_buffer_bytes = 0;  ///< 0: the kernel finds out
};

/// Sets up a connection that was accepted or is about to be dialled.
void set_up_link(int fd, const LinkOptions& options);

/// Begins to connect from a NIC's address, without waiting: EPOLLOUT says when it is done, connect_error()
/// how. A host that does not answer fails after twice options.dead_after_ns or a little later.
///
/// Errors   kSystem, kPeerLost: the kernel refuses at once; names both addresses.
Result<UniqueFd> dial(const SocketAddress& from, const SocketAddress& to, const LinkOptions& options);

}  // namespace hips::tcp
