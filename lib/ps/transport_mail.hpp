#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/os/shared_memory.hpp"
#include "lib/base/result.hpp"
#include "lib/ps/mail.hpp"
#include "transports/transport.hpp"

namespace hips::ps {

/// Mail over transports: for each peer a ring of slots in the receiver's registered memory. A frame, one or more batches, takes
/// a slot; the receiver takes frames in the order of their numbers, whatever order they arrive in, and so returns the slots.
///
///     sender                                     receiver
///     frame n  --- put with notification --->    slot n mod slots
///              <--- in the next frame's head,    "n + 1 frames are consumed"
///                   or a notification alone
///
/// Where several NICs lead to a peer, frames go over them by turns; what arrives first waits for the frames before it.
///
/// Batches that are written while several frames are not yet consumed share the next frame. What finds no free slot waits in
/// memory, so a sender never blocks.
///
/// Cost     memory: 2 x slots x slot_bytes for each peer, touched when it is used. One request to the transport per frame.
/// Threads  one at a time.
class TransportMail final : public Mail {
 public:
  struct Options {
    std::string name;  ///< of what the mail is for, for errors
    Rank rank = 0;
    std::size_t slot_bytes = 32U << 10U;
    std::uint32_t num_slots = 16;
    std::vector<Rank> peers;  ///< without this rank
    Rank service = 0;         ///< of this node; may be this rank
  };
  /// Calls with a frame's batches; a failure ends progress().
  using Receive = std::function<Status(Rank from, std::span<const std::byte> batches)>;

  /// Errors   those of SharedMemory::create().
  static Result<std::unique_ptr<TransportMail>> create(Options options, Receive receive);
  ~TransportMail() override;
  TransportMail(const TransportMail&) = delete;
  TransportMail& operator=(const TransportMail&) = delete;

  /// Adds a transport, and gives its number.
  ///
  /// Errors   those of register_memory().
  Result<std::size_t> add(std::unique_ptr<transport::Transport> made);
  /// Opens an endpoint for a peer by each of the transports of these numbers, each once and fewer than slots; the peer names as many, which
  /// these lead to one by one. Gives what the peer passes to its connect().
  Result<std::vector<std::byte>> open(Rank peer, std::span<const std::size_t> transports);
  /// Errors   kMismatch: the bytes are not of open(). Those of Transport::connect().
  Status connect(Rank peer, std::span<const std::byte> introduction);

  std::byte* begin(Rank to, std::size_t bytes) override;
  void end(Rank to, std::size_t bytes) override;
  [[nodiscard]] std::size_t most_bytes() const override;
  [[nodiscard]] bool has_room(Rank to) const override;

  /// Receives what has arrived and sends what waits; true if there was any.
  ///
  /// Errors   what Receive returned.
  Result<bool> progress();
  /// The first connection that broke, or a NIC that is down; ok: neither. The peer may have left because of another failure.
  [[nodiscard]] Status lost() const;
  /// Greets every peer over each connection: it is ready.
  void greet_all();
  /// Connections to all peers, and those over which a peer has greeted. From any thread.
  [[nodiscard]] std::size_t num_connections() const;
  [[nodiscard]] std::size_t num_greeted() const { return num_greeted_.load(std::memory_order_acquire); }

  /// Whether something that was written to the service of this node is not yet with a transport. Of other peers it may stay for
  /// long: until they make calls. From any thread.
  [[nodiscard]] bool has_unsent() const { return has_unsent_.load(std::memory_order_acquire); }
  /// Takes what this rank has written to itself, and sends what it has written to others, unless frames that are not consumed
  /// yet suggest to wait for more.
  Status send_and_take_own();

  /// Requests a wake-up: adds descriptors to `fds`. False: there is news already, do not sleep.
  bool arm(std::vector<pollfd>& fds);
  void disarm();

 private:
  /// The begin of a frame.
  struct FrameHead {
    std::uint32_t number = 0;
    std::uint32_t consumed = 0;  ///< frames that the sender has consumed of the receiver's
    std::uint32_t bytes = 0;     ///< that follow
    std::uint32_t greets = 0;
  };
  static_assert(sizeof(FrameHead) == 16);

  struct Port {
    std::unique_ptr<transport::Transport> transport;
    transport::MemoryId memory = -1;
    transport::RemoteRegion region{};  ///< of our memory, for peers
    transport::PeerId num_peers = 0;
    std::vector<std::size_t> peers;  ///< by PeerId: number in peers_
    Status down;
  };
  /// A connection with a peer.
  struct Path {
    std::size_t port = 0;
    transport::PeerId id = -1;
    transport::RemoteRegion remote{};
  };
  struct Peer {
    Rank rank = -1;
    std::vector<Path> paths;  ///< frame n takes number n modulo their number
    std::uint64_t remote_offset = 0;
    std::byte* received = nullptr;  ///< ring of slots
    std::byte* sent = nullptr;      ///< the same, of what we send
    // Numbers of frames; each grows without end.
    std::uint32_t written = 0;       ///< frames that are complete
    std::uint32_t posted = 0;        ///< of these, frames that the transport has accepted
    std::uint32_t consumed = 0;      ///< of these, frames that the peer has consumed
    std::size_t open_bytes = 0;      ///< in frame `written`, so far
    bool in_overflow = false;        ///< begin() gave room in `overflow`
    std::size_t overflow_begin = 0;  ///< of that room, in its last frame
    std::deque<std::vector<std::byte>> overflow;
    std::uint32_t taken = 0;  ///< frames of the peer that we have consumed
    std::uint32_t told = 0;   ///< of these, what it knows
    std::vector<bool> arrived;
  };

  /// Frames that are not consumed, above which written batches wait for more.
  static constexpr std::uint32_t kWindow = 4;
  /// Consumed frames that a peer is told of at once, because it may wait for that.
  static constexpr std::uint32_t kTellAfter = 2;
  static constexpr std::uint32_t kCreditBit = 1U << 31U;

  TransportMail(Options options, Receive receive, SharedMemory memory);
  Peer& peer(Rank rank) { return peers_[index_.at(rank)]; }
  [[nodiscard]] std::size_t room() const { return options_.slot_bytes - sizeof(FrameHead); }
  [[nodiscard]] bool has_slot(const Peer& to) const { return to.written - to.consumed < options_.num_slots; }
  std::byte* slot(std::byte* ring, std::uint32_t number) const {
    return ring + (number % options_.num_slots) * options_.slot_bytes;
  }
  void close_frame(Peer& to, bool greets = false);
  void post(Peer& to);
  void tell(Peer& to);
  void refill(Peer& to);
  Status take(Peer& from);
  void send_written();
  void on_event(Port& port, const transport::Event& event);

  Options options_;
  Receive receive_;
  SharedMemory memory_;
  std::vector<Port> ports_;
  std::vector<Peer> peers_;
  std::map<Rank, std::size_t> index_;
  std::vector<std::byte> to_self_, from_self_;  ///< batches to this rank
  std::size_t self_begin_ = 0;
  std::vector<transport::Event> events_;
  Status lost_;
  std::atomic<bool> has_unsent_{false};
  std::atomic<std::size_t> num_greeted_{0};
};

}  // namespace hips::ps
