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

/// A process as a transport sees it: an index that the progress engine hands out, 0, 1, 2, ...
using PeerId = std::int32_t;

/// Opaque bytes that a transport makes on one side and reads on the other; the bootstrap carries them.
using Address = std::vector<std::byte>;

/// What a (process, NIC) can do. All limits are asked of the device, none is assumed.
struct Limits {
  std::string name;  ///< "shm", "inproc", "mlx5_0:1"
  std::string device;
  std::string description{};  ///< for people: the device's address and settings, and why they were chosen
  double latency_ns = 0;
  double bandwidth_bytes_per_s = 0;
  std::size_t max_message_bytes = 0;             ///< of one put
  std::size_t best_segment_bytes = 128U << 10U;  ///< pieces in which a long message takes the least time
  std::int32_t best_credits = 4;                 ///< such pieces on their way at once that keep it busy
  std::size_t max_posted = 0;                    ///< work requests that `post` takes before it says "full"
  bool attaches_memory = false;                  ///< attach() works: peers' memory is directly addressable
  /// What post() takes is locally complete when it returns; a signalled request still raises its completion.
  bool completes_on_post = false;
  bool needs_local_registration = false;  ///< sources of put must lie in registered memory
  /// Memory may be registered for a moment: it costs next to nothing, and what peers still put there after
  /// deregister() is dropped without harm to the endpoint; an arrival that goes with it is raised.
  bool registers_freely = false;
  /// What is posted arrives although the peer has not called connect(); false: it comes once it has.
  bool arrives_before_connect = true;
  /// Requests move by themselves, at some time after post(); false: before post() or a poll() returns.
  bool asynchronous = false;
};

enum class MemoryKind : std::uint8_t {
  kHost,     ///< ordinary memory of this process
  kShared,   ///< a SharedMemory segment (lib/base/os/shared_memory.hpp) that peers may map, from its start
  kPhantom,  ///< has a size but no bytes: for simulated time
};

/// Memory to register. The caller keeps it alive until deregister().
struct MemoryDesc {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  int fd = -1;  ///< kShared: the segment's descriptor
};

/// Names registered memory inside this process.
using MemoryId = std::int32_t;

/// Names memory of a peer: what register_memory() gave there, carried by the bootstrap.
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
  MemoryId memory = -1;  ///< where Limits::needs_local_registration
};

enum class Verb : std::uint8_t {
  kPut,        ///< write to the peer's memory
  kPutNotify,  ///< write (possibly nothing), then raise an arrival with `token` at the peer
  kGet,        ///< read from the peer's memory into `into`
};

/// One posted transfer. The pieces land one after the other at `remote_offset`.
///
/// Ordering: an arrival is raised after all data of its own request and of every earlier kPut to the same
/// peer has landed. Two kPutNotify to the same peer may arrive in either order.
struct WorkRequest {
  Verb verb = Verb::kPutNotify;
  PeerId peer = -1;
  std::array<LocalPiece, 2> pieces{};  ///< typically header and payload
  std::int32_t num_pieces = 0;
  std::span<std::byte> into;             ///< kGet; its registration, where needed, is that of pieces[0]
  const RemoteRegion* remote = nullptr;  ///< may be null where nothing is written
  std::uint64_t remote_offset = 0;
  std::uint32_t token = 0;    ///< kPutNotify: {slot, generation}, meaning nothing to the transport
  std::uint64_t context = 0;  ///< comes back in the completion
  /// Raise a kCompletion when the pieces may be overwritten, and those of all earlier requests to that peer.
  bool signalled = true;
};

struct Event {
  enum class Kind : std::uint8_t {
    kCompletion,  ///< a request posted here is done locally: its source may be overwritten
    kArrival,     ///< a peer's kPutNotify has landed
    kPeerDead,    ///< the endpoint to `peer` is broken for good; `error` says why
    kPortDown,    ///< this NIC is; `error` says why
  };
  Kind kind = Kind::kCompletion;
  PeerId peer = -1;
  std::uint32_t token = 0;
  std::uint64_t context = 0;
  Status error;  ///< empty, and no allocation, where all is well
};

/// Result of arm().
struct Armed {
  bool ready = false;  ///< something came meanwhile: poll again, do not sleep
  int fd = -1;         ///< becomes readable when something comes
};

/// One object per (process, NIC).
///
/// Threads  all calls by the progress owner, one at a time.
/// Errors   cold calls return Status or Result; hot calls never fail: "full" and "nothing" are ordinary
///          answers, broken peers arrive as events.
/// Source   six cold calls after UCX uct_iface, batched hot calls after eRPC's transport.h.
class Transport {
 public:
  virtual ~Transport() = default;

  // Cold.
  [[nodiscard]] virtual const Limits& query() const = 0;
  /// Makes this side's endpoint for `peer` and gives what the peer's connect() needs.
  virtual Result<Address> open(PeerId peer) = 0;
  /// Completes the endpoint with the address that the peer's open() of us gave. Both sides must have called
  /// open() before either posts; see Limits::arrives_before_connect.
  /// kPeerLost: it is gone already; what it has posted still arrives.
  virtual Status connect(PeerId peer, std::span<const std::byte> address) = 0;
  /// Drops the endpoint; unfinished requests to it are dropped without completion, and no event of it comes
  /// after. At the peer it raises kPeerDead, after all that has arrived before.
  virtual void close(PeerId peer) = 0;
  virtual Result<Region> register_memory(const MemoryDesc& memory) = 0;
  virtual void deregister(MemoryId memory) = 0;
  /// Maps a peer's region where memory is shared; kUnsupported elsewhere.
  virtual Result<std::span<std::byte>> attach(PeerId peer, const RemoteRegion& region) = 0;

  // Hot.
  /// Takes requests from the front; returns how many. Fewer than given means "full": try again after poll().
  virtual std::size_t post(std::span<const WorkRequest> requests) = 0;
  /// Fills events from the front; returns how many.
  virtual std::size_t poll(std::span<Event> events) = 0;

  // Sleeping.
  /// Asks to be woken. The caller must poll() once more after arm() before it sleeps on the fd; such a poll
  /// takes back no wake-up whose event it does not report.
  virtual Armed arm() = 0;
  /// After waking, or when the caller decides not to sleep after all.
  virtual void disarm() = 0;
};

}  // namespace hips::transport
