#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/result.hpp"

namespace hips::transport {

/// A transport's number for a peer process. The progress engine assigns 0, 1, 2, ...
using PeerId = std::int32_t;

/// Opaque bytes that a transport writes on one side and reads on the other; the bootstrap transfers them.
using Address = std::vector<std::byte>;

/// The capabilities of one NIC of this process. The transport queries the device for all of them.
struct Limits {
  std::string name;  ///< "shm", "inproc", "mlx5_0:1"
  std::string device;
  std::string description{};  ///< text: the device's address and settings, and why they were chosen
  double latency_ns = 0;
  double bandwidth_bytes_per_s = 0;
  std::size_t max_message_bytes = 0;  ///< of one put
  std::size_t best_segment_bytes = 128U
                                   << 10U;  ///< segment size with which a long message takes the least time
  std::int32_t best_credits = 4;            ///< outstanding segments that keep the NIC busy
  std::size_t max_posted = 0;               ///< outstanding work requests that `post` accepts
  bool attaches_memory = false;             ///< attach() works: peers' memory is directly addressable
  /// A request that post() accepts is locally complete when post() returns. Signalled ones still raise kCompletion.
  bool completes_on_post = false;
  bool needs_local_registration = false;  ///< sources of put must lie in registered memory
  /// Registration costs almost nothing, so it may last for one call. Data that peers put there after
  /// deregister() is dropped and the endpoint stays intact; its notification still raises an arrival.
  bool registers_freely = false;
  /// Posted requests arrive before the peer has called connect(). False: they arrive after it has.
  bool arrives_before_connect = true;
  bool polls_by_system_call = false;
  /// Requests make progress outside of post() and poll(). False: only while one of these runs.
  bool asynchronous = false;
};

enum class MemoryKind : std::uint8_t {
  kHost,     ///< ordinary memory of this process
  kShared,   ///< a SharedMemory segment (lib/base/os/shared_memory.hpp) that peers may map, from its start
  kPhantom,  ///< a size without bytes, for simulated time
};

/// Memory to register. The caller keeps it alive until deregister().
struct MemoryDesc {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  int fd = -1;  ///< kShared: the segment's descriptor
};

/// Identifies registered memory inside this process.
using MemoryId = std::int32_t;

/// Identifies memory of a peer: the result of its register_memory(), sent by the bootstrap or in a grant.
struct RemoteRegion {
  std::array<std::uint64_t, 4> key{};  ///< the transport's own: rkey, address, descriptor, ...
  std::uint64_t bytes = 0;
};

/// Registered memory: `local` is valid here, `remote` is what peers need to reach it.
struct Region {
  MemoryId local = -1;
  RemoteRegion remote;
};

/// A piece of local memory to send from. A null address sends `bytes` phantom bytes.
struct LocalPiece {
  const std::byte* address = nullptr;
  std::size_t bytes = 0;
  MemoryId memory = -1;  ///< if Limits::needs_local_registration
};

enum class Verb : std::uint8_t {
  kPut,        ///< write to the peer's memory
  kPutNotify,  ///< write (possibly nothing), then raise an arrival with `token` at the peer
  kGet,        ///< read from the peer's memory into `into`
};

/// One transfer to post. The pieces are written consecutively, from `remote_offset` on.
///
/// Ordering: an arrival is raised after all data of its own request, and of every earlier kPut to the same
/// peer, has been written. Two kPutNotify to the same peer may arrive in either order.
struct WorkRequest {
  Verb verb = Verb::kPutNotify;
  PeerId peer = -1;
  std::array<LocalPiece, 2> pieces{};  ///< typically header and payload
  std::int32_t num_pieces = 0;
  std::span<std::byte> into;             ///< kGet; its registration, if needed, is pieces[0].memory
  const RemoteRegion* remote = nullptr;  ///< may be null if nothing is written
  std::uint64_t remote_offset = 0;
  std::uint32_t token = 0;    ///< kPutNotify: passed to the peer's arrival (exec::SlotToken)
  std::uint64_t context = 0;  ///< returned in the completion
  /// Raises kCompletion when these pieces, and those of all earlier requests to that peer, may be overwritten.
  bool signalled = true;
};

struct Event {
  enum class Kind : std::uint8_t {
    kCompletion,  ///< a request of this side is locally complete: its source may be overwritten
    kArrival,     ///< a peer's kPutNotify and its data are here
    kPeerDead,    ///< the endpoint to `peer` is broken for good; `error` says why
    kPortDown,    ///< this NIC is down; `error` says why
    kPortUp,      ///< it is up again; its connections may have survived
  };
  Kind kind = Kind::kCompletion;
  PeerId peer = -1;
  std::uint32_t token = 0;
  std::uint64_t context = 0;
  Status error;  ///< success for kCompletion and kArrival, without an allocation
};

/// Result of arm().
struct Armed {
  bool ready = false;  ///< an event is ready: poll again, do not sleep
  int fd = -1;         ///< becomes readable when an event is ready
  /// `fd` is readable as long as an event is ready: one who polled before arm() may sleep without another poll.
  bool stays_readable = false;
};

/// One object per (process, NIC).
///
/// Threads  all calls by the progress owner, one at a time.
/// Errors   cold calls return Status or Result. Hot calls never fail: "full" and "nothing" are ordinary
///          answers, and poll() reports broken peers as events.
/// Source   the cold calls follow UCX uct_iface, the batched hot calls eRPC's transport.h.
class Transport {
 public:
  virtual ~Transport() = default;

  // Cold.
  [[nodiscard]] virtual const Limits& query() const = 0;
  /// Creates this side's endpoint for `peer`. Returns the address for the peer's connect().
  virtual Result<Address> open(PeerId peer) = 0;
  /// Completes the endpoint with the address from the peer's open() of this rank. Both sides call open()
  /// before either posts; see Limits::arrives_before_connect.
  /// kPeerLost: the peer is gone already; requests that it has posted still arrive.
  virtual Status connect(PeerId peer, std::span<const std::byte> address) = 0;
  /// Closes the endpoint. Outstanding requests to it end without completion, and it raises no more events.
  /// At the peer it raises kPeerDead, after all earlier arrivals.
  virtual void close(PeerId peer) = 0;
  virtual Result<Region> register_memory(const MemoryDesc& memory) = 0;
  virtual void deregister(MemoryId memory) = 0;
  /// The owner of this memory takes it back from a call that has failed. What requests have still to read of it is copied; an
  /// endpoint for which there is no memory ends. Nothing to do where post() reads all, or the device does, from registered memory.
  virtual void take_back(std::span<const std::byte> memory) noexcept { (void)memory; }
  /// Maps a peer's region if memory is shared, else kUnsupported.
  virtual Result<std::span<std::byte>> attach(PeerId peer, const RemoteRegion& region) = 0;

  // Hot.
  /// Accepts requests from the front; returns how many. Fewer than given means "full": retry after poll().
  virtual std::size_t post(std::span<const WorkRequest> requests) = 0;
  /// Fills events from the front; returns how many.
  virtual std::size_t poll(std::span<Event> events) = 0;
  /// The same for completions that are known without a system call, as after a post() that the kernel has taken.
  virtual std::size_t poll_completions(std::span<Event> events) {
    (void)events;
    return 0;
  }

  // Sleeping.
  /// Requests a wake-up. The caller must poll() once more after arm() before it sleeps on the fd, unless that stays readable. This poll
  /// does not consume the wake-up of an event that it does not report. Requests that are posted after this poll may
  /// complete without a wake-up: one who waits for their completions polls again.
  virtual Armed arm() = 0;
  /// After waking, or when the caller decides not to sleep after all.
  virtual void disarm() = 0;
};

}  // namespace hips::transport
