#include "python/hips_torch/message_work.hpp"

#include <ATen/core/jit_type.h>

#include "python/hips_torch/error.hpp"

namespace hips::torch_backend {

MessageWork::MessageWork(int rank, c10d::OpType op, const char* title, const at::Tensor& tensor, int peer, int tag)
    : Work(rank, op, title, std::vector<at::Tensor>{tensor}),
      tensor_(tensor),
      vector_(tensor),
      peer_(peer),
      tag_(tag),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {}

bool MessageWork::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (timeout.count() <= 0) {
    cv_.wait(lock, [&] { return completed_; });
  } else if (!cv_.wait_for(lock, timeout, [&] { return completed_; })) {
    throw HipsError(HIPS_ERR_TIMEOUT, peer_,
                    ("hips: wait(timeout): " + text() + " has not ended after " + std::to_string(timeout.count()) +
                     " ms; it goes on")
                        .c_str());
  }
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

std::string MessageWork::text() const {
  const std::string peer = peer_ == kAnyRank ? "any rank" : "rank " + std::to_string(peer_);
  return (opType_ == c10d::OpType::SEND ? "send to " : "recv from ") + peer + " (tag " + std::to_string(tag_) + ")";
}

void MessageWork::complete(std::exception_ptr error) {
  try {
    if (!error && opType_ != c10d::OpType::SEND) vector_.copy_out();
  } catch (...) {
    error = std::current_exception();
  }
  finish(error);
  if (error)
    future_->setError(error);
  else
    future_->markCompleted(c10::IValue(std::vector<at::Tensor>{tensor_}));
}

}  // namespace hips::torch_backend
