#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include <hips/hips.h>
#include <hips/last_error.hpp>
#include <hips/status.hpp>

namespace hips {

/// Registers memory of the caller for as long as this object lives: a NIC then reads it in place. See
/// hips_mem_register() for gain and cost.
///
/// Shapes   any memory of more than 0 bytes; registered ranges do not overlap.
/// Owns     the registration, not the memory, which has to outlive this object. End every collective on it
///          first: one that still runs keeps the registration.
/// Threads  any; ranges may be registered before and after communicators are made.
/// Errors   throws Error. kInvalidArgument: null, 0 bytes, overlap with a registered range. kUnsupported: in
///          a child of fork().
/// Example  std::vector<float> gradient(1'000'000);
///          hips::RegisteredMemory registered(std::span<float>{gradient});
///          comm.allreduce(gradient, hips::ReduceOp::kSum);
class RegisteredMemory {
 public:
  RegisteredMemory() = default;
  template <typename T>
  requires(!std::is_const_v<T>) explicit RegisteredMemory(std::span<T> memory) {
    throw_if_failed(hips_mem_register(memory.data(), memory.size_bytes(), &memory_));
  }
  RegisteredMemory(RegisteredMemory&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  /// Deregisters the old memory at once.
  RegisteredMemory& operator=(RegisteredMemory&& other) noexcept {
    RegisteredMemory taken(std::move(other));
    std::swap(memory_, taken.memory_);
    return *this;
  }
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;
  ~RegisteredMemory() {
    if (memory_ != nullptr) (void)hips_mem_deregister(&memory_);
  }

 private:
  hips_mem_t memory_ = nullptr;
};

/// Registered memory of `T`, value-initialised (zero), from hips_mem_alloc().
///
/// Owns     the memory. End every collective on it first.
/// Errors   throws Error. kInvalidArgument: no elements. kOutOfMemory. kUnsupported: in a child of fork().
/// Example  auto gradient = hips::allocate_registered<float>(1'000'000);
///          comm.allreduce(gradient, hips::ReduceOp::kSum);
template <typename T>
class RegisteredBuffer {
  static_assert(std::is_trivially_copyable_v<T>, "registered memory is made of zero bytes");

 public:
  RegisteredBuffer() = default;
  explicit RegisteredBuffer(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      throw Error(Status::error(Code::kInvalidArgument, "allocate_registered: the size overflows"));
    void* address = nullptr;
    throw_if_failed(hips_mem_alloc(count * sizeof(T), &address));
    span_ = {static_cast<T*>(address), count};
  }
  RegisteredBuffer(RegisteredBuffer&& other) noexcept : span_(std::exchange(other.span_, {})) {}
  /// Frees the old memory at once.
  RegisteredBuffer& operator=(RegisteredBuffer&& other) noexcept {
    RegisteredBuffer taken(std::move(other));
    std::swap(span_, taken.span_);
    return *this;
  }
  RegisteredBuffer(const RegisteredBuffer&) = delete;
  RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;
  ~RegisteredBuffer() { (void)hips_mem_free(span_.data()); }

  [[nodiscard]] std::span<T> span() const { return span_; }
  [[nodiscard]] T* data() const { return span_.data(); }
  [[nodiscard]] std::size_t size() const { return span_.size(); }
  [[nodiscard]] T* begin() const { return span_.data(); }
  [[nodiscard]] T* end() const { return span_.data() + span_.size(); }
  [[nodiscard]] T& operator[](std::size_t index) const { return span_[index]; }

 private:
  std::span<T> span_;
};

template <typename T>
RegisteredBuffer<T> allocate_registered(std::size_t count) {
  return RegisteredBuffer<T>(count);
}

}  // namespace hips
