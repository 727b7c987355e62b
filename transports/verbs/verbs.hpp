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
struct VerbsOptions {
  std::string hca{};               ///< devices and ports, in NCCL's syntax; "": all that are active
  std::int32_t gid_index = -1;     ///< -1: the best one
  std::uint8_t traffic_class = 0;  ///< DSCP << 2
  std::uint8_t service_level = 0;  ///< 0 to 15
  std::uint8_t timeout = 18;  ///< a packet without acknowledgement is sent again after 4.096 us * 2^timeout
  std::uint8_t retry_count = 7;       ///< 0 to 7 retransmissions, then the peer is dead
  std::int32_t pairs_per_peer = 1;    ///< queue pairs over which whole requests are striped, 1 to 8
  std::uint32_t max_queue_pairs = 0;  ///< of each port; 0: the device's limit
  bool cm = false;                    ///< connect by librdmacm; iWARP always does
  std::uint32_t max_mtu = 0;          ///< bytes of a packet; 0: what both ports have active
  /// Requested; the device decides. The default has room for a header with a small payload.
  std::uint32_t inline_bytes = 128;
};

/// A usable port, and why it was chosen.
struct PortChoice {
  std::string device;
  std::uint8_t port = 1;
  std::uint32_t gid_index = 0;
  bool iwarp = false;
  std::string name;           ///< "rxe0:1"
  std::string address;        ///< of the GID: "10.0.0.1", "fe80::1"
  std::string subnet_prefix;  ///< of an InfiniBand port: "fe80::/64"; otherwise empty
  double bandwidth_bytes_per_s = 0;
  std::string description;  ///< "rxe0:1, RoCE v2 10.0.0.1 at index 1 (the best of 2), MTU 4096"
};

/// The active ports of this node that match HIPS_IB_HCA, in its order; without it sorted by name.
///
/// Errors   kInvalidArgument: HIPS_IB_HCA or HIPS_IB_GID_INDEX is wrong, or no port matches; lists the ports.
///          kUnsupported: no device, no active port, no address; each with a remedy.
Result<std::vector<PortChoice>> find_ports(const VerbsOptions& options);

/// True if the node may have RDMA devices. Reads one directory and loads no driver.
bool any_device();

/// Makes the transport over one port: reliable connections, one or more queue pairs for each peer.
///
///     sender                                  receiver
///     RDMA_WRITE_WITH_IMM (header, payload) -> memory of the region; the token takes a posted receive
///                          <- SEND: credits    after posting half a window of receives anew
///     SEND: disconnect, on close()         -> kPeerDead, after everything that was sent before
///
/// The data of a request and its notification use one queue pair, which keeps their order. With several per
/// peer, whole requests are striped. Devices without immediates (iWARP) notify by a SEND of eight bytes after
/// the writes. A peer that ends without a disconnect message stops acknowledging; after (retry_count + 1)
/// timeouts this raises kPeerDead with the device's error text. A port that goes down raises kPortDown.
///
/// close() keeps the queue pair until the peer has the disconnect message, at most two seconds; the destructor
/// waits for that. Data arrives only after both sides have called connect() (Limits::arrives_before_connect).
///
/// Cost     no lock, allocation or system call in post() and poll() except those of the device's library.
/// Owns     queue pairs, completion queues and registrations, never the registered memory.
/// Threads  as Transport. A child of fork() may only destroy its copy.
/// Errors   kUnsupported, kSystem: the device rejects a call. kOutOfMemory: RLIMIT_MEMLOCK is too small; the
///          message says how to raise it. Later errors arrive as events; each names device, peer, status and
///          remedy.
/// Source   NCCL src/transport/net_ib.cc and UCX uct/ib/rc; InfiniBand specification vol. 1, 9.7.
/// Example  auto ports = verbs::find_ports({});
///          auto transport = verbs::create(ports->front(), {});
Result<std::unique_ptr<transport::Transport>> create(const PortChoice& port, const VerbsOptions& options);

/// The largest inline request to `peer`. The device may grant less or more than VerbsOptions::inline_bytes.
/// Empty while there is no queue pair; rdma_cm makes it when it connects.
std::optional<std::uint32_t> inline_bytes(const transport::Transport& transport, transport::PeerId peer);

}  // namespace hips::verbs
