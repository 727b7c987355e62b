#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transports/tcp/wire.hpp"
#include "transports/tcp/zero_copy.hpp"
#include "transports/transport.hpp"

namespace hips::tcp {

/// A frame on its way out and the request that it carries out.
struct Outgoing {
  FrameHeader header;
  std::array<iovec, 2> pieces{};
  std::size_t num_pieces = 0;
  std::size_t bytes = sizeof(FrameHeader);  ///< of header and pieces
  std::span<std::byte> into{};              ///< of a get
  std::uint32_t token = 0;
  std::uint64_t context = 0;
  bool signalled = false;
  std::uint64_t ticket = 0;  ///< of the last zero-copy send that had bytes of it
};
static_assert(sizeof(Outgoing) == 128, "tcp.hpp says what a queue costs");

/// The sending end: requests in the order of post(), and answers to the peer's gets, which go first.
///
///     requests   head ... done and to be reported ... sent ... to be sent ... tail
///
/// A request is done when all its bytes are copied by the kernel or, where that reads them later, released by
/// it; a get when its answer is here. They are reported in order, so a completion stands for all before it.
class Outbox {
 public:
  enum class Sent {
    kAll,     ///< nothing is left
    kFull,    ///< the socket takes no more now
    kBroken,  ///< the connection is
  };

  explicit Outbox(std::uint32_t entries) : requests_(entries), answers_(kMaxGets) {}

  // Requests.
  [[nodiscard]] bool full() const { return tail_ - head_ == requests_.size(); }
  [[nodiscard]] bool may_get() const { return gets_posted_ - gets_answered_ < kMaxGets; }
  /// Needs !full(), and may_get() for a get.
  void push(const Outgoing& request);
  /// The oldest request, where it is done and wants to be reported; those that do not are dropped.
  const Outgoing* done();
  /// After done().
  void pop();

  // Gets.
  /// Where the answer to the oldest get goes; null where there is none.
  [[nodiscard]] const Outgoing* oldest_get() const;
  void get_answered() { ++gets_answered_; }
  /// The peer's; false when it asks for more than it may.
  bool push_answer(const Outgoing& answer);
  /// Whether an answer that is not sent yet reads from this memory.
  [[nodiscard]] bool answers_from(transport::MemoryId memory) const;

  [[nodiscard]] bool all_sent() const { return sent_ == tail_ && answers_sent_ == answers_tail_; }
  /// True when no frame is half sent.
  [[nodiscard]] bool between_frames() const { return partial_ == 0; }
  /// Sends as much as the socket takes, many frames with one system call. `error`: the errno at kBroken.
  Sent flush(int fd, int& error);

  /// Of the socket, before the first flush().
  void set_up(int fd, ZeroCopy use) { zero_copy_.set_up(fd, use); }
  /// Does the kernel hold memory that it will release with a message?
  [[nodiscard]] bool awaits_release() const { return zero_copy_.any_held(); }
  void look_for_releases(int fd) { zero_copy_.look(fd); }

 private:
  /// The k-th of the frames that are to be sent; null beyond them.
  [[nodiscard]] Outgoing* frame(std::size_t k);
  Outgoing& request(std::uint64_t number) { return requests_[number % requests_.size()]; }
  std::size_t gather(std::span<iovec> pieces, std::size_t& bytes);
  /// Answers lie where the next ones go, so that only requests can be the kernel's for longer.
  [[nodiscard]] bool only_requests() const {
    return answers_sent_ == answers_tail_ && (partial_ == 0 || partial_is_request_);
  }
  /// `ticket`: of the send; 0: it copied.
  void advance(std::size_t bytes, std::uint64_t ticket);

  std::vector<Outgoing> requests_;
  std::uint64_t head_ = 0, sent_ = 0, tail_ = 0;
  std::vector<Outgoing> answers_;
  std::uint64_t answers_sent_ = 0, answers_tail_ = 0;
  std::size_t partial_ = 0;          ///< bytes of the first frame that are sent
  bool partial_is_request_ = false;  ///< else it is an answer
  std::uint64_t gets_posted_ = 0, gets_answered_ = 0, gets_reported_ = 0;
  ZeroCopySends zero_copy_;
};

}  // namespace hips::tcp
