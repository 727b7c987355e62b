#pragma once

#include <ATen/core/ivalue.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include "python/hips_torch/tensors.hpp"
#include "python/hips_torch/torch_api.hpp"

namespace hips::torch_backend {

/// A send or recv that has been started. The thread of Messages executes and completes it.
///
/// Threads  any.
class MessageWork final : public c10d::Work {
 public:
  static constexpr int kAnyRank = -1;
  using Clock = std::chrono::steady_clock;

  /// `peer`: the other rank in the process group; kAnyRank: of a recv from any.
  MessageWork(int rank, c10d::OpType op, const char* title, const at::Tensor& tensor, int peer, int tag);

  /// Throws the error of the message. With a timeout: a HipsError when that passes; the message stays started.
  bool wait(std::chrono::milliseconds timeout) override;
  /// The rank that has sent the message.
  int sourceRank() const override { return peer_; }
  std::vector<at::Tensor> result() override { return {tensor_}; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  friend class Messages;

  /// "recv from rank 3 (tag 7)"
  [[nodiscard]] std::string text() const;
  /// With an error, or with the received data copied to the tensor.
  void complete(std::exception_ptr error);

  const at::Tensor tensor_;
  const Dense vector_;
  std::atomic<int> peer_;
  const int tag_;
  const Clock::time_point started_ = Clock::now();
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace hips::torch_backend
