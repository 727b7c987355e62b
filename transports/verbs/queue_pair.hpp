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

struct Endpoint;

/// What a message without data means. Where the device has immediates a token is that of an
/// RDMA_WRITE_WITH_IMM, all 32 bits of it, and the others are those of a SEND_WITH_IMM: kind in the upper two
/// bits, value in the rest. Elsewhere each is a SEND of these eight bytes.
struct Note {
  enum class Kind : std::uint32_t {
    kToken,    ///< a notification
    kCredits,  ///< so many tokens were taken, and their receives posted anew, since the start
    kGoodbye,  ///< nothing follows on this queue pair
    kHello,    ///< the first message of the side that connected by rdma_cm
  };
  static constexpr std::uint32_t kValueMask = (1U << 30U) - 1;
  Kind kind = Kind::kToken;
  std::uint32_t value = 0;

  [[nodiscard]] std::uint32_t immediate() const {
    return static_cast<std::uint32_t>(kind) << 30U | (value & kValueMask);
  }
  static Note of_immediate(std::uint32_t bits) { return {static_cast<Kind>(bits >> 30U), bits & kValueMask}; }
};
static_assert(sizeof(Note) == 8);

/// What a completion belongs to: wr_id taken apart. Queue pairs are named by a slot of the transport's table
/// and its generation, because completions of one that is gone may still come.
struct WorkId {
  bool receive = false;
  std::uint16_t slot = 0;
  std::uint16_t generation = 0;  ///< 15 bits
  std::uint32_t number = 0;      ///< of the send request, or of the receive's buffer

  [[nodiscard]] std::uint64_t pack() const {
    return std::uint64_t{receive} << 63U | std::uint64_t{generation} << 48U | std::uint64_t{slot} << 32U |
           number;
  }
  static WorkId unpack(std::uint64_t bits) {
    return {(bits >> 63U) != 0, static_cast<std::uint16_t>(bits >> 32U),
            static_cast<std::uint16_t>(bits >> 48U & 0x7fffU), static_cast<std::uint32_t>(bits)};
  }
};

/// One reliable connection, with the accounts that keep its queues from overrunning (budget.hpp).
///
/// Requests are linked into a chain and posted with one call, flush(). Their numbers count from 0 and the
/// queue completes them in order, so one signalled completion speaks for all before it.
class QueuePair {
 public:
  struct Setup {
    ibv_pd* domain = nullptr;
    ibv_cq* queue = nullptr;
    ibv_srq* shared_receives = nullptr;  ///< null: receives of its own
    Budget budget;
    std::uint32_t window = 0;        ///< tokens that the peer may send unanswered
    std::uint32_t inline_bytes = 0;  ///< asked for
    bool immediates = true;
    std::uint16_t slot = 0, generation = 0;
    rdma_cm_id* cm = nullptr;  ///< owned from then on; null: connected by hand
    std::string port;          ///< for errors
  };
  /// How the other end is reached.
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

  /// Makes it, without receives. Errors   those of call_error().
  static Result<std::unique_ptr<QueuePair>> create(const Setup& setup);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // Connecting by hand; rdma_cm does it by itself.
  Status initialise(std::uint8_t port);
  Status connect(const Path& path, std::uint32_t own_packet_number);
  /// Nothing is sent or taken any more; everything posted comes back as flushed.
  void stop();

  /// Posts all receives anew that were taken, or, the first time, all there are.
  Status post_receives();
  /// A set of shared receives that another queue pair has left serves this one.
  void forget_receives() { taken_.clear(); }

  // Sending. `room()` first.
  [[nodiscard]] std::uint32_t room() const {
    return Budget::room(depth_, static_cast<std::uint32_t>(posted_ - completed_));
  }
  [[nodiscard]] bool token_allowed() const { return tokens_sent_ - tokens_answered_ < peer_window_; }
  /// Links a request to the chain; gives its number. It must stay where it is until flush().
  std::uint64_t append(ibv_send_wr& request, bool signalled);
  [[nodiscard]] bool has_chain() const { return first_ != nullptr; }
  /// 0, or the errno of the device's refusal.
  int flush();
  /// Whether a request of `count` parts should raise a completion, so that the queue always gets room again.
  [[nodiscard]] bool wants_signal(std::uint32_t count) const { return unsignalled_ + count >= depth_ / 4; }
  /// Eight bytes of registered memory for request `number`, where notes are sent from.
  ibv_sge note_memory(const Note& note, std::uint64_t number);
  /// Sends one at once, behind the chain; false where the send queue has no room at all.
  bool send_note(const Note& note);
  void count_token() { ++tokens_sent_; }

  // What completions say.
  /// The number that a 32-bit one of a completion means; all up to it are complete.
  void on_sent(std::uint32_t number);
  /// A receive was taken by `note`, read by read_note() where there are no immediates.
  void on_received(const Note& note, std::uint32_t buffer);
  [[nodiscard]] Note read_note(std::uint32_t buffer) const;
  /// Half the window is used up: post receives and answer.
  [[nodiscard]] bool owes_answer() const { return tokens_received_ - tokens_returned_ >= window_ / 2; }
  /// False where there was no room for the answer: try again after the next completion.
  bool answer();

  [[nodiscard]] ibv_qp& handle() const { return *qp_; }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  [[nodiscard]] std::uint64_t posted() const { return posted_; }
  [[nodiscard]] std::uint32_t max_inline() const { return max_inline_; }
  [[nodiscard]] std::uint16_t slot() const { return slot_; }
  [[nodiscard]] std::uint32_t window() const { return window_; }
  void set_peer_window(std::uint32_t window) { peer_window_ = window; }
  [[nodiscard]] rdma_cm_id* cm() const { return cm_.get(); }

  Endpoint* endpoint = nullptr;  ///< whose it is
  bool established = false;      ///< may be sent on
  bool goodbye_due = false, goodbye_sent = false, goodbye_seen = false;
  std::uint64_t goodbye_number = 0;
  int completion_queue = -1;  ///< index of the transport's

 private:
  QueuePair() = default;

  CmIdHandle cm_;
  PairHandle own_;  ///< where there is no cm_
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

  std::uint64_t tokens_sent_ = 0, tokens_answered_ = 0;
  std::uint64_t tokens_received_ = 0, tokens_returned_ = 0;
  std::vector<std::uint32_t> taken_;  ///< buffers of receives to post anew
  std::vector<Note> notes_;           ///< without immediates: buffers of receives, then of sends
  MemoryHandle notes_memory_;
  std::uint32_t num_receives_ = 0;
};

}  // namespace hips::verbs
