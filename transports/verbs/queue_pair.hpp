#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "transports/verbs/budget.hpp"
#include "transports/verbs/gid.hpp"
#include "transports/verbs/handles.hpp"

namespace hips::verbs {

struct VerbsEndpoint;

/// A message without user data. On devices with immediates, a token is the 32-bit immediate of an
/// RDMA_WRITE_WITH_IMM. The other kinds are the immediate of a SEND_WITH_IMM: the kind in the upper two bits,
/// the value in the rest. On devices without immediates each message is a SEND of these eight bytes.
struct ControlMessage {
  enum class Kind : std::uint32_t {
    kToken,       ///< a notification
    kCredits,     ///< tokens since the start whose receives are posted anew
    kDisconnect,  ///< orderly shutdown: nothing follows on this queue pair
    kHello,       ///< the first message of the side that connected by rdma_cm
  };
  static constexpr std::uint32_t kValueMask = (1U << 30U) - 1;
  Kind kind = Kind::kToken;
  std::uint32_t value = 0;

  [[nodiscard]] std::uint32_t immediate() const {
    return static_cast<std::uint32_t>(kind) << 30U | (value & kValueMask);
  }
  static ControlMessage of_immediate(std::uint32_t bits) {
    return {static_cast<Kind>(bits >> 30U), bits & kValueMask};
  }
};
static_assert(sizeof(ControlMessage) == 8);

/// The contents of a wr_id. A queue pair is identified by its slot in the transport's table and the slot's
/// generation, because completions may arrive after the queue pair is destroyed.
struct WorkId {
  bool receive = false;
  std::uint16_t slot = 0;
  std::uint16_t generation = 0;  ///< 15 bits
  std::uint32_t number = 0;      ///< of the send request or the receive buffer

  [[nodiscard]] std::uint64_t pack() const {
    return std::uint64_t{receive} << 63U | std::uint64_t{generation} << 48U | std::uint64_t{slot} << 32U |
           number;
  }
  static WorkId unpack(std::uint64_t bits) {
    return {(bits >> 63U) != 0, static_cast<std::uint16_t>(bits >> 32U),
            static_cast<std::uint16_t>(bits >> 48U & 0x7fffU), static_cast<std::uint32_t>(bits)};
  }
};

/// One reliable connection, with the counters that keep its queues from overrunning (budget.hpp).
///
/// Requests are linked into a chain and posted with one call, flush(). They are numbered from 0 and complete in
/// order, so a signalled completion covers all earlier requests.
class QueuePair {
 public:
  struct Setup {
    ibv_pd* domain = nullptr;
    ibv_cq* queue = nullptr;
    ibv_srq* shared_receives = nullptr;  ///< null: the queue pair has its own receives
    Budget budget;
    std::uint32_t window = 0;        ///< tokens that the peer may send without credit
    std::uint32_t inline_bytes = 0;  ///< requested
    bool immediates = true;
    std::uint16_t slot = 0, generation = 0;
    rdma_cm_id* cm = nullptr;  ///< create() takes ownership; null: connected by connect()
    std::string port;          ///< for messages
  };
  /// The peer's queue pair and how to reach it.
  struct Path {
    std::uint32_t queue_pair = 0;
    std::uint32_t packet_number = 0;
    Gid gid;
    std::uint16_t lid = 0;
    std::uint8_t mtu = 0;
    std::uint8_t port = 1;
    std::uint8_t gid_index = 0;
    std::uint8_t traffic_class = 0, service_level = 0, timeout = 0, retry_count = 0, reads = 0;
    std::uint32_t flow_label = 0;
  };

  /// Makes a queue pair without receives.
  ///
  /// Errors   those of call_error().
  static Result<std::unique_ptr<QueuePair>> create(const Setup& setup);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // Connecting with exchanged addresses. With rdma_cm these are not called.
  Status initialise(std::uint8_t port);
  Status connect(const Path& path, std::uint32_t own_packet_number);
  /// Stops sending and receiving. Everything posted completes with a flush error.
  void stop();

  /// Posts anew all receives that were used; the first call posts all.
  Status post_receives();
  /// Uses the shared receives that a destroyed queue pair has left, instead of posting its own.
  void adopt_spare_receives() { taken_.clear(); }

  // Sending. Check room() before append().
  [[nodiscard]] std::uint32_t room() const {
    return Budget::room(depth_, static_cast<std::uint32_t>(posted_ - completed_));
  }
  [[nodiscard]] bool token_allowed() const { return tokens_sent_ - tokens_credited_ < peer_window_; }
  /// Links a request to the chain; returns its number. The request must not move until flush().
  std::uint64_t append(ibv_send_wr& request, bool signalled);
  [[nodiscard]] bool has_chain() const { return first_ != nullptr; }
  /// Posts the chain; returns 0 or the errno of the failed call.
  int flush();
  /// True if a request of `count` parts must be signalled, so that the send queue is freed in time.
  [[nodiscard]] bool wants_signal(std::uint32_t count) const { return unsignalled_ + count >= depth_ / 4; }
  /// Registered memory with `message` in it, for the SEND with number `number`.
  ibv_sge control_memory(const ControlMessage& message, std::uint64_t number);
  /// Sends a control message now, after the chain; false if the send queue is full.
  bool send_control(const ControlMessage& message);
  void count_token() { ++tokens_sent_; }

  // Completions.
  /// `number`: the low 32 bits of the request's number. All requests up to it are complete.
  void on_sent(std::uint32_t number);
  /// `message` used the receive `buffer`. Without immediates the message comes from read_control().
  void on_received(const ControlMessage& message, std::uint32_t buffer);
  [[nodiscard]] ControlMessage read_control(std::uint32_t buffer) const;
  /// True if half the window is used: call post_receives() and return_credits().
  [[nodiscard]] bool owes_credits() const { return tokens_received_ - tokens_returned_ >= window_ / 2; }
  /// False if the send queue is full: try again after the next completion.
  bool return_credits();

  [[nodiscard]] ibv_qp& handle() const { return *qp_; }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  [[nodiscard]] std::uint64_t posted() const { return posted_; }
  [[nodiscard]] std::uint32_t max_inline() const { return max_inline_; }
  [[nodiscard]] std::uint16_t slot() const { return slot_; }
  [[nodiscard]] std::uint32_t window() const { return window_; }
  void set_peer_window(std::uint32_t window) { peer_window_ = window; }
  [[nodiscard]] rdma_cm_id* cm() const { return cm_.get(); }

  VerbsEndpoint* endpoint = nullptr;  ///< its owner
  bool established = false;           ///< sending is allowed
  bool disconnect_due = false, disconnect_sent = false, disconnect_received = false;
  std::uint64_t disconnect_number = 0;
  int completion_queue = -1;  ///< index in the transport

 private:
  QueuePair() = default;

  CmIdHandle cm_;
  PairHandle own_;  ///< null if cm_ owns the queue pair
  ibv_qp* qp_ = nullptr;
  bool immediates_ = true, shares_receives_ = false;
  ibv_srq* shared_ = nullptr;
  std::uint16_t slot_ = 0, generation_ = 0;
  std::uint32_t depth_ = 0, max_inline_ = 0;
  std::uint32_t window_ = 0, peer_window_ = 0;
  std::string port_;

  std::uint64_t posted_ = 0, completed_ = 0;  ///< requests
  std::uint32_t unsignalled_ = 0;
  ibv_send_wr* first_ = nullptr;
  ibv_send_wr* last_ = nullptr;

  std::uint64_t tokens_sent_ = 0, tokens_credited_ = 0;
  std::uint64_t tokens_received_ = 0, tokens_returned_ = 0;
  std::vector<std::uint32_t> taken_;  ///< buffers of used receives, to post anew
  std::vector<ControlMessage>
      control_messages_;  ///< without immediates: buffers of the receives, then of the sends
  MemoryHandle control_memory_;
  std::uint32_t num_receives_ = 0;
};

}  // namespace hips::verbs
