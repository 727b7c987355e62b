#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "transports/transport.hpp"
#include "transports/verbs/queue_pair.hpp"
#include "transports/verbs/trouble.hpp"

namespace hips::verbs {

inline constexpr std::size_t kMaxPairsPerPeer = 8;

/// What an Address carries.
struct VerbsAddress {
  static constexpr std::uint64_t kMagic = 0x3130627276706968;  // "hipvrb01"
  std::uint64_t magic = kMagic;
  std::uint64_t token = 0;  ///< random, identifies the endpoint
  std::array<std::uint8_t, 16> gid{};
  std::array<std::uint32_t, kMaxPairsPerPeer> queue_pairs{};
  std::array<std::uint32_t, kMaxPairsPerPeer> packet_numbers{};
  std::array<std::uint16_t, kMaxPairsPerPeer> windows{};
  std::uint8_t num_pairs = 0;
  std::uint8_t gid_kind = 0;  ///< Gid::Kind
  std::uint8_t mtu = 0;       ///< active, IBV_MTU_*
  std::uint8_t reads = 0;     ///< concurrent RDMA reads that it serves
  std::uint8_t cm = 0;        ///< 1: connect by rdma_cm to cm_address
  std::uint8_t immediates = 1;
  std::uint16_t lid = 0;
  std::int32_t pid = 0;
  sockaddr_in6 cm_address{};    ///< or a sockaddr_in in its place
  std::array<char, 64> host{};  ///< null-terminated, like `port`
  std::array<char, 64> port{};
};

/// Requests of an endpoint whose completion is reported or awaited, oldest first. Fixed capacity.
class PendingRequests {
 public:
  struct Entry {
    std::uint64_t context = 0;
    std::uint64_t number = 0;  ///< of its last work request on the queue pair
    std::uint32_t token = 0;
    std::uint8_t pair = 0;
    bool signalled = false;
  };
  explicit PendingRequests(std::size_t capacity) : entries_(capacity) {}
  [[nodiscard]] bool full() const { return count_ == entries_.size(); }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] const Entry& front() const { return entries_[head_]; }
  void push(const Entry& entry) {
    const std::size_t at = head_ + count_;
    entries_[at >= entries_.size() ? at - entries_.size() : at] = entry;
    ++count_;
  }
  void pop() {
    head_ = head_ + 1 == entries_.size() ? 0 : head_ + 1;
    --count_;
  }
  void clear() { count_ = 0; }

 private:
  std::vector<Entry> entries_;
  std::size_t head_ = 0, count_ = 0;
};

/// The local endpoint of the connection to a peer.
struct VerbsEndpoint {
  enum class State : std::uint8_t {
    kOpen,
    kConnecting,  ///< by rdma_cm; post() accepts no request yet
    kConnected,
    kBroken,   ///< accepts requests and discards them
    kClosing,  ///< close() was called; waits until the disconnect message is delivered
  };
  explicit VerbsEndpoint(std::size_t capacity) : pending(capacity) {}

  State state = State::kOpen;
  Status cause;  ///< why it is broken
  transport::PeerId peer = -1;
  std::uint64_t token = 0;
  bool has_address = false;
  VerbsAddress remote;
  PeerName name;
  std::vector<std::unique_ptr<QueuePair>> pairs;  ///< null: rdma_cm has not made it yet
  bool shares_receives = false;                   ///< uses the shared receive queue (Budget::own_receives)
  std::size_t next_pair = 0;                      ///< the next to use, round-robin
  PendingRequests pending;
  // After a kPut, requests stay on its queue pair until it is complete, because a later notification also
  // covers its data.
  std::size_t bound_pair = 0;
  std::uint64_t bound_until = 0;  ///< complete when QueuePair::completed() reaches it
  std::int64_t close_deadline_ns = 0;
  bool control_due = false;  ///< credits or a disconnect message wait for room in the send queue

  /// Connections that rdma_cm has not established yet, by queue pair.
  std::vector<CmIdHandle> connecting;
};

}  // namespace hips::verbs
