#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/os/socket.hpp"
#include "lib/base/result.hpp"
#include "transports/tcp/zero_copy.hpp"
#include "transports/transport.hpp"

namespace hips::tcp {

struct Options {
  SocketAddress address;  ///< of the NIC; port 0: any
  std::string device;     ///< the NIC's name, "eth0"
  std::int64_t dead_after_ns =
      4'000'000'000;  ///< an idle peer whose host answers nothing for so long is dead; at least 2 s
  std::uint32_t queue_entries = 256;      ///< requests to one peer that are not complete and reported
  std::uint32_t socket_buffer_bytes = 0;  ///< of each direction; 0: the kernel finds out
  ZeroCopy zero_copy = ZeroCopy::kOff;
  double latency_ns = 30'000;  ///< what query() says; the planner's default, not a measurement
};

/// Makes the transport over one NIC: a TCP connection for each peer, bound to the NIC's address.
///
///     sender                              receiver
///     header, pieces  --- sendmsg --->    recvmsg: the rest of a payload straight into its region, then
///     header, pieces                      the next headers into a small buffer
///     ...
///     goodbye on close                    -> kPeerDead, after all that was sent before
///
/// The side whose endpoint has the smaller random token dials. The first bytes of both directions are a hello
/// with the token that the other side's open() gave, so whoever was not given the address is shown the door,
/// and no data goes to a stranger. Nothing is sent to a peer until it has called connect().
///
/// A request is complete when the kernel has copied its bytes, or has sent them and reads them no more: they
/// get through even if this process closes or exits then, unless the peer ends first. Requests that wait for
/// the socket lie in a queue of fixed size, which poll() sends from; when that is full, post() says so.
///
/// A peer whose process ends raises kPeerDead after all that it sent. One whose host is gone raises it after
/// `dead_after_ns` where nothing was on its way to it, else when the kernel gives up sending again: noticing
/// hosts is the control connection's job.
///
/// Cost     a system call for each poll() and for each batch of post(), none that waits. Memory: 8 KiB and
///          128 bytes * queue_entries for each peer, and the kernel's socket buffers.
/// Owns     its sockets, never the registered memory.
/// Threads  as Transport. A child of fork() may destroy its copy, and nothing else; peers do not notice.
/// Errors   kSystem: the address is not one of this host, or the process has no descriptors left.
///          Later ones arrive as events; each names the peer's process, host and address.
/// Example  auto transport = tcp::create({.address = networks.front().address, .device = "eth0"});
Result<std::unique_ptr<transport::Transport>> create(const Options& options);

}  // namespace hips::tcp
