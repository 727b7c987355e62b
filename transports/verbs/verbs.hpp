#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "transports/transport.hpp"

namespace hips::verbs {

/// What a user may set; the names are those of the HIPS_IB_* and HIPS_VERBS_* variables.
struct Options {
  std::string hca{};                  ///< which devices and ports, in NCCL's syntax; "": all that are active
  std::int32_t gid_index = -1;        ///< -1: the best one
  std::uint8_t traffic_class = 0;     ///< DSCP << 2
  std::uint8_t service_level = 0;     ///< 0 to 15
  std::uint8_t timeout = 18;          ///< 4.096 us * 2^timeout without an answer until a packet is sent again
  std::uint8_t retry_count = 7;       ///< 0 to 7, then the peer is given up
  std::int32_t pairs_per_peer = 1;    ///< queue pairs that whole segments are striped over, 1 to 8
  std::uint32_t max_queue_pairs = 0;  ///< of each port; 0: what the device allows
  bool cm = false;                    ///< connect by librdmacm; iWARP always does
  std::uint32_t max_mtu = 0;          ///< bytes of a packet; 0: what both ports have active
  std::uint32_t inline_bytes =
      128;  ///< asked for; the device says what it gives. A header with a small payload fits
};

/// A port that may carry data, and why it is like that.
struct PortChoice {
  std::string device;
  std::uint8_t port = 1;
  std::uint32_t gid_index = 0;
  bool iwarp = false;
  std::string name;         ///< "rxe0:1"
  std::string description;  ///< "rxe0:1, RoCE v2 10.0.0.1 at index 1 (the best of 2), MTU 4096"
};

/// The active ports of this host that HIPS_IB_HCA lets pass, in its order, else in that of their names.
///
/// Errors   kInvalidArgument: HIPS_IB_HCA or HIPS_IB_GID_INDEX is wrong, or nothing passes; lists what there
/// is.
///          kUnsupported: no device, no active port, no address; each with what to do.
Result<std::vector<PortChoice>> find_ports(const Options& options);

/// True where the host may have RDMA devices: a look at one folder, without loading any driver.
bool any_device();

/// Makes the transport over one port: reliable connections, a queue pair or a few for each peer.
///
///     sender                                  receiver
///     RDMA_WRITE_WITH_IMM (header, payload) -> memory of the region; the token takes a posted receive
///                          <- SEND: "64 more"  after posting 64 receives anew, so that they never run dry
///     SEND "goodbye" on close              -> kPeerDead, after all that was sent before
///
/// Data of a request and its notification go on one queue pair, where order holds; with several per peer
/// whole requests are striped. Devices without immediates (iWARP) notify by a SEND of eight bytes behind the
/// writes. A peer that ends without goodbye is noticed by its missing answers, after (retry_count + 1) * the
/// timeout, as kPeerDead with the device's words; a port that goes down is kPortDown.
///
/// close() keeps the queue pair until the peer has the goodbye, at most two seconds; destruction waits for
/// it. Both sides must have called connect() before what is posted can arrive
/// (Limits::arrives_before_connect).
///
/// Cost     no lock, allocation or system call in post() and poll() but those of the device's own library.
/// Owns     queue pairs, completion queues and registrations, never the registered memory.
/// Threads  as Transport. A child of fork() may destroy its copy, and nothing else.
/// Errors   create: kUnsupported, kSystem: the device refuses. kOutOfMemory: RLIMIT_MEMLOCK is too small;
/// says
///          how to raise it. Later ones arrive as events; each names device, peer, status and remedy.
/// Source   NCCL src/transport/net_ib.cc and UCX uct/ib/rc for the shape; Infiniband specification vol.
/// 1, 9.7. Example  auto ports = verbs::find_ports({});
///          auto transport = verbs::create(ports->front(), {});
Result<std::unique_ptr<transport::Transport>> create(const PortChoice& port, const Options& options);

/// The bytes that go inline to `peer`, as the device gave them for Options::inline_bytes: fewer, or more.
/// Nothing while there is no queue pair; rdma_cm makes it as it connects.
std::optional<std::uint32_t> inline_bytes(const transport::Transport& transport, transport::PeerId peer);

}  // namespace hips::verbs
