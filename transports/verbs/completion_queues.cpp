#include "transports/verbs/completion_queues.hpp"

#include <fcntl.h>

#include <cerrno>

#include "transports/verbs/trouble.hpp"

namespace hips::verbs {

Result<CompletionQueues> CompletionQueues::create(ibv_context& context, const Budget& budget,
                                                  const std::string& port) {
  CompletionQueues queues;
  queues.context_ = &context;
  queues.budget_ = budget;
  queues.port_ = port;
  queues.channel_.reset(ibv_create_comp_channel(&context));
  if (queues.channel_ == nullptr) return fail(call_error(port, "creating a completion channel", errno));
  const int fd = queues.channel_->fd;
  if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) return fail(call_error(port, "fcntl", errno));
  return queues;
}

Result<int> CompletionQueues::reserve() {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].pairs == budget_.pairs_per_queue) continue;
    ++queues_[i].pairs;
    return static_cast<int>(i);
  }
  QueueHandle made(
      ibv_create_cq(context_, static_cast<int>(budget_.completions), nullptr, channel_.get(), 0));
  if (made == nullptr) return fail(call_error(port_, "creating a completion queue", errno));
  queues_.push_back({.handle = std::move(made), .pairs = 1});
  return static_cast<int>(queues_.size()) - 1;
}

std::size_t CompletionQueues::poll(std::span<ibv_wc> completions) {
  for (std::size_t tries = 0; tries < queues_.size(); ++tries) {
    next_ = next_ + 1 >= queues_.size() ? 0 : next_ + 1;
    const int count =
        ibv_poll_cq(queues_[next_].handle.get(), static_cast<int>(completions.size()), completions.data());
    if (count > 0) return static_cast<std::size_t>(count);
  }
  return 0;
}

void CompletionQueues::arm() {
  for (const Queue& queue : queues_) (void)ibv_req_notify_cq(queue.handle.get(), 0);
}

void CompletionQueues::drain() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
}

}  // namespace hips::verbs
