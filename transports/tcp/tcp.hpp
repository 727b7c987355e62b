#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/os/socket.hpp"
#include "lib/base/result.hpp"
#include "transports/tcp/zero_copy.hpp"
#include "transports/transport.hpp"

namespace hips::tcp {

struct TcpOptions {
  SocketAddress address;  ///< of the NIC; port 0: any
  std::string device;     ///< the NIC's name, "eth0"
  /// An idle peer whose node has not answered for this long is dead; at least 2 s.
  std::int64_t dead_after_ns = 4'000'000'000;
  std::uint32_t queue_entries = 256;      ///< requests to one peer whose completion is not yet reported
  std::uint32_t socket_buffer_bytes = 0;  ///< of each direction; 0: chosen by the kernel
  ZeroCopy zero_copy = ZeroCopy::kOff;
  double latency_ns = 30'000;  ///< reported by query(): the planner's default, not a measurement
};

/// Makes the transport over one NIC: a TCP connection for each peer, bound to the NIC's address.
///
///     sender                              receiver
///     header, pieces  --- sendmsg --->    recvmsg: the rest of a payload directly into its region, then
///     header, pieces                      the next headers into a small buffer
///     ...
///     close frame on close()              -> kPeerDead, after everything that was sent before
///
/// The side whose endpoint has the smaller random token connects, the other accepts. Both directions begin with
/// a hello that carries the token from the other side's open(). A connection without the right token is
/// closed, and no data is sent on it. Nothing is sent to a peer until it has called connect().
///
/// A request is complete when the kernel has copied its bytes, or has sent them and no longer reads them. They
/// are delivered even if this process closes or exits then, unless the peer ends first. Requests that wait for
/// the socket stay in a queue of fixed size, from which poll() sends. When the queue is full, post() accepts
/// no more.
///
/// A peer whose process ends raises kPeerDead after everything that it sent. A peer whose node has failed
/// raises it after `dead_after_ns` if no data to it was outstanding, else when the kernel stops
/// retransmitting. Detecting failed nodes sooner is the job of the control connection.
///
/// Cost     one non-blocking system call for each poll() and each batch of post(). Memory: 8 KiB and
///          128 bytes * queue_entries for each peer, and the kernel's socket buffers.
/// Owns     its sockets, never the registered memory.
/// Threads  as Transport. A child of fork() may only destroy its copy; peers do not notice.
/// Errors   kSystem: the address is not one of this node, or the process has no descriptors left.
///          Later errors arrive as events; each names the peer's process, node and address.
/// Example  auto transport = tcp::create({.address = networks.front().address, .device = "eth0"});
Result<std::unique_ptr<transport::Transport>> create(const TcpOptions& options);

}  // namespace hips::tcp
