#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "python/hips_torch/channel.hpp"
#include "python/hips_torch/message_work.hpp"

namespace hips::torch_backend {

/// The messages of this rank of a process group: send, recv, and recv from any rank.
///
/// A message goes to the oldest recv of its tag that names its source or any. Its sender goes on when it has been received:
/// by that recv, or into a buffer, while the rank receives from this source with other tags. Each pair of ranks has a channel
/// for each direction, set up at the first message.
///
/// Errors   HipsError in the works. A rank that is lost fails the messages with it, and no others.
/// Threads  any; one of its own, which sleeps while nothing is outstanding.
class Messages {
 public:
  /// A message that has waited for longer than `timeout` fails; 0: none does. stop() has to be called in the end.
  static std::shared_ptr<Messages> make(c10::intrusive_ptr<c10d::Store> store, int rank, int size, Job job,
                                        std::chrono::milliseconds timeout);
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  WorkPointer send(const at::Tensor& tensor, int to, int tag);
  /// `from`: a rank of the process group, or MessageWork::kAnyRank.
  WorkPointer receive(const at::Tensor& tensor, int from, int tag);
  /// Ends what is outstanding, and what is started afterwards. The caller holds no lock that works which end may need.
  void stop();

 private:
  Messages(c10::intrusive_ptr<c10d::Store> store, int rank, int size, Job job, std::chrono::milliseconds timeout);

  using Pointer = c10::intrusive_ptr<MessageWork>;

  /// Goes before each message.
  struct Header {
    std::int64_t tag;
    std::uint64_t bytes;
  };
  /// One direction between this rank and another.
  struct Line {
    std::unique_ptr<Channel> channel;
    enum class Phase : std::uint8_t { kIdle, kHeader, kData } phase = Phase::kIdle;
    Header header{};
    std::deque<Pointer> sends;  ///< the first is on its way unless kIdle
    // Of the receiver, in phase kData:
    Pointer target;     ///< whose tensor the data goes to
    at::Tensor buffer;  ///< or this, where no recv of the tag and size is there
  };
  /// A message in a buffer.
  struct Arrived {
    int from;
    std::int64_t tag;
    at::Tensor data;
  };

  void start(Pointer work);
  void run();
  Line& line(int from, int to);
  /// Hands the work to its line.
  void post(Pointer work);
  /// Whether anything has moved.
  bool advance(Line& line);
  bool advance_send(Line& line);
  bool advance_receive(Line& line);
  void take_header(Line& line);
  void take_data(Line& line);
  void deliver(const Pointer& work, const Arrived& message);
  void complete(const Pointer& work, std::exception_ptr error);
  /// Fails all works that need the line.
  void fail(Line& line, const std::exception_ptr& error);
  void expire();
  [[nodiscard]] bool is_wanted(const Line& line) const;
  /// Whether a message from any rank can still come.
  [[nodiscard]] bool may_receive() const;
  [[nodiscard]] std::exception_ptr destroyed() const;

  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_, size_;
  const Job job_;
  const std::chrono::milliseconds timeout_;

  std::mutex mutex_;  ///< guards `started_` and `stops_`; the thread alone uses what follows them
  std::condition_variable wake_;
  std::vector<Pointer> started_;
  bool stops_ = false;
  std::map<std::pair<int, int>, Line> lines_;  ///< by source and destination
  std::list<Pointer> receives_;                ///< that no message has come for, the oldest first
  std::list<Arrived> arrived_;                 ///< that no recv has come for, the oldest first
  std::size_t num_outstanding_ = 0;
  std::thread thread_;
};

}  // namespace hips::torch_backend
