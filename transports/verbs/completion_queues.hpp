#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "transports/verbs/budget.hpp"
#include "transports/verbs/handles.hpp"

namespace hips::verbs {

/// The completion queues of a transport. Each is large enough for all completions of its queue pairs. They share
/// one channel that wakes a sleeping process. Queues are added as queue pairs are made, because not every device
/// can resize one.
class CompletionQueues {
 public:
  /// Errors   kSystem, kOutOfMemory: the device rejects a call.
  static Result<CompletionQueues> create(ibv_context& context, const Budget& budget, const std::string& port);

  /// Reserves room for one queue pair; returns the index of the queue. Makes a queue if all are full.
  Result<int> reserve();
  void release(int index) { --queues_[static_cast<std::size_t>(index)].pairs; }
  [[nodiscard]] ibv_cq* handle(int index) const {
    return queues_[static_cast<std::size_t>(index)].handle.get();
  }

  /// Takes completions of one queue; the queues are polled round-robin.
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
  std::size_t next_ = 0;
};

}  // namespace hips::verbs
