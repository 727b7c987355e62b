#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/os/shared_memory.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "transports/shm/doorbell.hpp"
#include "transports/shm/notify_ring.hpp"
#include "transports/shm/shm.hpp"
#include "transports/shm/watch.hpp"
#include "transports/transport.hpp"

namespace hips::shm {

/// The start of a control segment; the doorbell and the rings follow.
struct ControlHeader {
  static constexpr std::uint64_t kMagic = 0x31306d6873706968;  // "hipshm01"
  std::uint64_t magic = kMagic;
  std::uint32_t ring_entries = 0;
  std::uint32_t num_rings = 0;
};

inline constexpr std::size_t kBellOffset = 64;
inline constexpr std::size_t kRingsOffset = kBellOffset + sizeof(Doorbell);
static_assert(sizeof(ControlHeader) <= kBellOffset);

/// The offset of ring `slot` in a control segment.
constexpr std::size_t ring_offset(std::uint32_t slot, std::uint32_t ring_entries) {
  return kRingsOffset + slot * ((NotifyRing::bytes(ring_entries) + 63) / 64 * 64);
}

/// The content of an Address: names of the control segment and the pipe, and the ring of the peer.
struct ShmAddress {
  static constexpr std::uint64_t kMagic = 0x31306d6873706968;
  std::uint64_t magic = kMagic;
  std::array<char, 48> boot_id{};  ///< ends with a 0
  std::uint64_t pid_namespace = 0;
  SharedMemoryName control;
  ProcessFile pipe;
  std::uint64_t ring_token = 0;
  std::uint32_t slot = 0;
  std::uint32_t padding = 0;
};

class ShmTransport final : public transport::Transport {
 public:
  static Result<std::unique_ptr<transport::Transport>> create(const ShmOptions& options);
  ~ShmTransport() override;
  ShmTransport(const ShmTransport&) = delete;
  ShmTransport& operator=(const ShmTransport&) = delete;

  [[nodiscard]] const transport::Limits& query() const override { return limits_; }
  Result<transport::Address> open(transport::PeerId peer) override;
  Status connect(transport::PeerId peer, std::span<const std::byte> address) override;
  void close(transport::PeerId peer) override;
  Result<transport::Region> register_memory(const transport::MemoryDesc& memory) override;
  void deregister(transport::MemoryId memory) override;
  Result<std::span<std::byte>> attach(transport::PeerId peer, const transport::RemoteRegion& region) override;
  std::size_t post(std::span<const transport::WorkRequest> requests) override;
  std::size_t poll(std::span<transport::Event> events) override;
  transport::Armed arm() override;
  void disarm() override;

 private:
  /// Adds to `taken` the requests that it has taken, also where it throws.
  void post(std::span<const transport::WorkRequest> requests, std::size_t& taken);
  /// A region of the peer that is mapped here. Its index is the owner's MemoryId.
  struct MappedRegion {
    std::uint64_t token = 0;
    SharedMemory memory;
  };

  struct Endpoint {
    enum class State : std::uint8_t { kOpen, kConnected, kBroken };
    State state = State::kOpen;
    transport::PeerId peer = -1;
    std::uint32_t slot = 0;  ///< our ring, to which the peer writes
    std::uint64_t ring_token = 0;
    RingReceiver inbox;
    RingSender outbox;
    std::vector<MappedRegion> regions;

    [[nodiscard]] bool has(const transport::RemoteRegion& region) const {
      const auto index = static_cast<std::uint32_t>(region.key[0]);
      return index < regions.size() && regions[index].token == region.key[1] &&
             regions[index].memory.size() >= region.bytes && region.bytes > 0;
    }

    // Of the peer; set by connect().
    std::int32_t pid = -1;
    SharedMemory control;
    Doorbell* bell = nullptr;
    NotifyRing* their_ring = nullptr;
    std::uint32_t their_slot = 0;  ///< the peer's ring, to which we write
    UniqueFd pipe;
    UniqueFd pidfd;
    bool watched = false;
  };

  /// A closed ring to which its sender may still write.
  struct Abandoned {
    std::uint32_t slot = 0;
    UniqueFd pidfd;  ///< of the sender, if known
  };

  struct Completion {
    transport::PeerId peer = -1;
    std::uint32_t token = 0;
    std::uint64_t context = 0;
  };

  /// An endpoint whose kPeerDead has not been raised yet.
  struct Broken {
    transport::PeerId peer = -1;
    Status error;
    bool after_arrivals = false;  ///< the peer closed it in order: its messages come first
  };

  ShmTransport(const ShmOptions& options, SharedMemory control, Watch watch);

  [[nodiscard]] NotifyRing* ring(std::uint32_t slot) const;
  [[nodiscard]] Endpoint* find_endpoint(transport::PeerId peer) const {
    return peer >= 0 && static_cast<std::size_t>(peer) < endpoints_.size()
               ? endpoints_[static_cast<std::size_t>(peer)].get()
               : nullptr;
  }
  Result<std::uint32_t> take_slot();
  Status read_address(std::span<const std::byte> bytes, ShmAddress& address) const;
  Status join(Endpoint& endpoint, const ShmAddress& address);
  Result<MappedRegion*> map(Endpoint& endpoint, const transport::RemoteRegion& region);

  bool move(Endpoint& endpoint, const transport::WorkRequest& request);
  std::byte* resolve(Endpoint& endpoint, const transport::WorkRequest& request, std::size_t bytes);
  void release_slot(Endpoint& endpoint);
  void break_endpoint(Endpoint& endpoint, Status error, bool after_arrivals);
  void refuse(transport::PeerId peer);

  void drop_completions(transport::PeerId peer);
  void queue_completion(const transport::WorkRequest& request);
  std::size_t take_completions(std::span<transport::Event> events);
  std::size_t take_arrivals(std::span<transport::Event> events);
  std::size_t take_broken(std::span<transport::Event> events);
  [[nodiscard]] std::uint32_t next_pending() const;
  std::size_t drain(std::uint32_t slot, std::span<transport::Event> events);
  void set_pending(std::uint32_t slot);
  void clear_pending(std::uint32_t slot);
  void look_at_processes();

  ShmOptions options_;
  transport::Limits limits_;
  std::int32_t pid_;  ///< the creator's: a forked child must not change memory that peers see
  Machine machine_;
  SharedMemory control_;
  Doorbell* bell_;
  Watch watch_;

  std::vector<std::unique_ptr<Endpoint>> endpoints_;  ///< by PeerId
  std::vector<Endpoint*> by_slot_;                    ///< null: free or abandoned
  std::vector<std::uint32_t> free_slots_;
  std::vector<Abandoned> abandoned_;
  std::vector<bool> regions_;  ///< by MemoryId; true: registered

  std::array<std::uint64_t, Doorbell::kNumWords> pending_{};  ///< rings that may have unread entries
  std::uint64_t pending_summary_ = 0;
  std::uint32_t cursor_ = 0;  ///< the ring to read first, so that a busy one starves no other

  std::vector<Completion> completions_;  ///< a queue of fixed size
  std::size_t completions_head_ = 0;
  std::size_t num_completions_ = 0;

  std::vector<Broken> broken_;
  std::vector<std::int32_t> ended_;
  std::uint32_t idle_polls_ = 0;
};

}  // namespace hips::shm
