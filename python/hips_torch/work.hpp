#pragma once

#include <ATen/core/ivalue.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <vector>

#include <hips/hips.h>

#include "python/hips_torch/torch_api.hpp"

namespace hips::torch_backend {

class Completer;

/// A collective that has been started. One thread at a time owns its request: the one that waits for the work, or else the
/// completer's.
///
/// Threads  any.
class HipsWork final : public c10d::Work {
 public:
  /// `copy_out` runs once the call has ended well, before the work is complete.
  HipsWork(int rank, c10d::OpType op, const char* title, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs,
           std::function<void()> copy_out);

  bool isCompleted() override;
  /// Throws the error of the call. With a timeout: a HipsError when that passes; the call then goes on, and the tensors still
  /// belong to it.
  bool wait(std::chrono::milliseconds timeout) override;
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  friend class Completer;

  /// For the one that starts the call. The completer lives as long as there are works.
  hips_request_t* request() { return &request_; }
  void set_completer(Completer& completer) { completer_ = &completer; }

  /// True for one thread, which then owns the request until it gives it back or the work is complete.
  bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { taken_.store(false, std::memory_order_release); }
  /// Waits for the call, and completes the work. Called by the owner.
  void end() { complete(hips_wait(&request_)); }
  /// Called by the owner with how the call ended.
  void complete(hips_status_t status);

  Completer* completer_ = nullptr;
  hips_request_t request_ = HIPS_REQUEST_NULL;
  std::atomic<bool> taken_{false};
  std::vector<at::Tensor> inputs_, outputs_;  ///< kept until the call has ended
  std::function<void()> copy_out_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace hips::torch_backend
