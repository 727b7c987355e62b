#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "transports/verbs/budget.hpp"
#include "transports/verbs/handles.hpp"

namespace hips::verbs {

/// The completion queues of a transport, each large enough for all that its queue pairs can complete, behind
/// one channel that can wake a sleeper. More queues are made as queue pairs come, since not every device can
/// resize one.
class CompletionQueues {
 public:
  /// Errors   kSystem, kOutOfMemory: the device refuses.
  static Result<CompletionQueues> create(ibv_context& context, const Budget& budget, const std::string& port);

  /// The index of a queue with room for one more queue pair, which is counted; makes one where all are full.
  Result<int> take_place();
  void give_back(int index) { --queues_[static_cast<std::size_t>(index)].pairs; }
  [[nodiscard]] ibv_cq* handle(int index) const {
    return queues_[static_cast<std::size_t>(index)].handle.get();
  }

  /// The next completions of the queue whose turn it is.
  std::size_t poll(std::span<ibv_wc> completions);

  // Sleeping: arm() all, then poll once more; drain() after waking.
  [[nodiscard]] int fd() const { return channel_->fd; }
  void arm();
  void drain();

 private:
  struct Queue {
    QueueHandle handle;
    std::uint32_t pairs = 0;
  };
  ibv_context* context_ = nullptr;
  Budget budget_;
  std::string port_;
  ChannelHandle channel_;
  std::vector<Queue> queues_;
  std::size_t turn_ = 0;
};

}  // namespace hips::verbs
