#include "python/hips_torch/work.hpp"

#include <ATen/core/jit_type.h>

#include <exception>
#include <thread>
#include <utility>

#include "python/hips_torch/completer.hpp"
#include "python/hips_torch/error.hpp"

namespace hips::torch_backend {

HipsWork::HipsWork(int rank, c10d::OpType op, const char* title, const std::vector<at::Tensor>& inputs,
                   std::vector<at::Tensor> outputs, std::function<void()> copy_out)
    : Work(rank, op, title, inputs),
      inputs_(inputs),
      outputs_(std::move(outputs)),
      copy_out_(std::move(copy_out)),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {}

bool HipsWork::isCompleted() {
  if (take()) {
    int done = 0;
    const hips_status_t status = hips_test(&request_, &done);
    if (done != 0)
      complete(status);
    else
      give_back();
  }
  return Work::isCompleted();
}

bool HipsWork::wait(std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!isCompleted()) {
      if (std::chrono::steady_clock::now() >= deadline)
        throw HipsError(HIPS_ERR_TIMEOUT, -1,
                        ("hips: wait(timeout): " + c10d::opTypeToString(opType_) + " has not ended after " +
                         std::to_string(timeout.count()) + " ms; it goes on")
                            .c_str());
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  } else if (take()) {
    end();
  }
  return Work::wait(kNoTimeout);
}

void HipsWork::complete(hips_status_t status) {
  std::exception_ptr error;
  try {
    throw_if_failed(status);
    if (copy_out_) copy_out_();
  } catch (...) {
    error = std::current_exception();
  }
  copy_out_ = nullptr;
  inputs_.clear();
  // The completer may hold the last reference.
  const auto self = c10::intrusive_ptr<HipsWork>::reclaim_copy(this);
  completer_->remove(*this);
  finish(error);
  if (error)
    future_->setError(error);
  else
    future_->markCompleted(c10::IValue(outputs_));
}

}  // namespace hips::torch_backend
