#pragma once

#include <cstdint>
#include <memory>

#include "lib/base/result.hpp"
#include "transports/shm/machine.hpp"
#include "transports/transport.hpp"

namespace hips::shm {

struct ShmOptions {
  std::int32_t max_peers = 1024;  ///< open at one time; address space only, touched when opened
  std::uint32_t ring_entries =
      256;                  ///< notifications from one peer that wait to be polled; a power of two >= 4
  double latency_ns = 200;  ///< reported by query(): the planner's default, not a measurement
  double bandwidth_bytes_per_s = 10e9;
};

/// Makes the transport between processes of one node, or between ranks in one process.
///
/// Registered memory is a SharedMemory segment (MemoryKind::kShared; MemoryDesc::address is its start). Peers
/// map it at attach(), or at their first request to it. A put is a memcpy by the sender, so posted data
/// arrives even if the process exits at once. A notification is a word in a ring in the receiver's memory.
///
///     sender                         receiver's segment
///     memcpy       ------------->    registered region
///     push token   ------------->    ring of this sender
///     set bit      ------------->    doorbell              <- an idle poll reads one word
///     asleep? write to its pipe                            <- set by arm()
///
/// Processes need the same node, pid namespace and user; connect() names the one that differs. The end of a
/// peer's process raises kPeerDead after all that it sent: at once in arm() or asleep, otherwise within about
/// a thousand idle polls. A peer that closes its endpoint also raises kPeerDead.
///
/// No side blocks. If a peer does not poll, its ring fills, and post() accepts no more requests to it. Its
/// next polls make room and wake a sleeping sender.
///
/// Cost     no lock, allocation or system call in post() and poll() while no process sleeps. Exceptions: the
///          first request to a region that is not attached, and a check of the peers' processes every 1024 idle
///          polls. Memory: 128 + 8 * ring_entries bytes for each open peer.
/// Owns     its control segment, which ends with its last user; nothing has a name in /dev/shm.
/// Threads  as Transport. A child of fork() may only destroy its copy; peers do not notice.
/// Errors   kInvalidArgument: an option out of range. kOutOfMemory, kSystem: the kernel rejects a call.
/// Example  auto transport = shm::create({});
Result<std::unique_ptr<transport::Transport>> create(const ShmOptions& options);

}  // namespace hips::shm
