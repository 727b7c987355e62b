#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transports/tcp/wire.hpp"
#include "transports/tcp/zero_copy.hpp"
#include "transports/transport.hpp"

namespace hips::tcp {

/// A frame to be sent, and the request that it belongs to.
struct Outgoing {
  FrameHeader header;
  std::array<iovec, 2> pieces{};
  std::size_t num_pieces = 0;
  std::size_t bytes = sizeof(FrameHeader);  ///< of header and pieces
  std::span<std::byte> into{};              ///< of a get
  std::uint32_t token = 0;
  std::uint64_t context = 0;
  bool signalled = false;
  std::uint64_t ticket = 0;  ///< of the last zero-copy send that included bytes of it
};
static_assert(sizeof(Outgoing) == 128, "tcp.hpp states the memory of a queue");

/// The sending end: requests in the order of post(), and answers to the peer's gets, which are sent first.
///
///     requests   head ... done, to be reported ... sent ... to be sent ... tail
///
/// A request is done when the kernel has copied all its bytes or, with zero copy, released them. A get is done
/// when its answer has arrived. Requests are reported in order, so a completion covers all earlier ones.
class Outbox {
 public:
  enum class SendResult {
    kAll,     ///< nothing is left to send
    kFull,    ///< the socket has no room now
    kBroken,  ///< the connection failed
  };

  explicit Outbox(std::uint32_t entries) : requests_(entries), answers_(kMaxGets) {}

  // Requests.
  [[nodiscard]] bool full() const { return tail_ - head_ == requests_.size(); }
  [[nodiscard]] bool may_get() const { return gets_posted_ - gets_answered_ < kMaxGets; }
  /// Requires !full(), and may_get() for a get.
  void push(const Outgoing& request);
  /// The oldest signalled request if it is done, else null. Drops unsignalled ones that are done.
  const Outgoing* done();
  /// Removes the request that done() returned.
  void pop();

  // Gets.
  /// The oldest unanswered get; null if there is none.
  [[nodiscard]] const Outgoing* oldest_get() const;
  void get_answered() { ++gets_answered_; }
  /// Queues the answer to a get of the peer; false if the peer exceeds kMaxGets.
  bool push_answer(const Outgoing& answer);
  /// True if an answer that is not sent yet reads from this memory.
  [[nodiscard]] bool answers_from(transport::MemoryId memory) const;

  /// Gives requests copies of these bytes, as far as they have still to send them. False if there is no memory for that, or if the
  /// kernel reads them without a copy.
  [[nodiscard]] bool take_back(std::span<const std::byte> memory) noexcept;

  [[nodiscard]] bool all_sent() const { return sent_ == tail_ && answers_sent_ == answers_tail_; }
  /// True when no frame is half sent.
  [[nodiscard]] bool between_frames() const { return partial_ == 0; }
  /// Sends as much as the socket accepts, many frames per system call. At kBroken, `error` is the errno.
  SendResult flush(int fd, int& error);

  /// Prepares the socket. Call it before the first flush().
  void set_up(int fd, ZeroCopy use) { zero_copy_.set_up(fd, use); }
  /// True if the kernel still reads from memory of zero-copy sends.
  [[nodiscard]] bool awaits_release() const { return zero_copy_.any_held(); }
  void read_releases(int fd) { zero_copy_.read_releases(fd); }

 private:
  /// The k-th of the frames to be sent; null beyond the last.
  [[nodiscard]] Outgoing* frame(std::size_t k);
  Outgoing& request(std::uint64_t number) { return requests_[number % requests_.size()]; }
  std::size_t gather(std::span<iovec> pieces, std::size_t& bytes);
  /// Zero copy is for requests only: the slot of an answer is reused as soon as it is sent.
  [[nodiscard]] bool only_requests() const {
    return answers_sent_ == answers_tail_ && (partial_ == 0 || partial_is_request_);
  }
  /// `ticket` of the send; 0: the kernel copied the bytes.
  void advance(std::size_t bytes, std::uint64_t ticket);

  std::vector<Outgoing> requests_;
  std::uint64_t head_ = 0, sent_ = 0, tail_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> copies_;  ///< by take_back(), until all is sent
  std::vector<Outgoing> answers_;
  std::uint64_t answers_sent_ = 0, answers_tail_ = 0;
  std::size_t partial_ = 0;          ///< bytes of the first frame already sent
  bool partial_is_request_ = false;  ///< false: it is an answer
  std::uint64_t gets_posted_ = 0, gets_answered_ = 0, gets_reported_ = 0;
  ZeroCopySends zero_copy_;
};

}  // namespace hips::tcp
