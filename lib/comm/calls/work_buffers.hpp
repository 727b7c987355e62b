#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace hips::comm {

/// A pool of temporary buffers of calls, for partial sums and reordered vectors. It keeps the last small
/// buffers, so that repeated calls allocate nothing.
///
/// Threads  any.
class WorkBuffers {
 public:
  /// A buffer that returns to the pool in its destructor. The pool outlives it.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          memory_(std::move(other.memory_)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(memory_, other.memory_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
      if (pool_ != nullptr) pool_->give_back(std::move(memory_), bytes_);
    }
    [[nodiscard]] std::byte* data() const { return memory_.get(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

   private:
    friend class WorkBuffers;
    Buffer(WorkBuffers* pool, std::unique_ptr<std::byte[]> memory, std::size_t bytes)
        : pool_(pool), memory_(std::move(memory)), bytes_(bytes) {}
    WorkBuffers* pool_ = nullptr;
    std::unique_ptr<std::byte[]> memory_;
    std::size_t bytes_ = 0;
  };

  WorkBuffers() { spare_.reserve(kMost); }  // give_back() allocates nothing

  /// Returns at least `bytes` uninitialised bytes. May throw std::bad_alloc.
  Buffer take(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      for (auto& [memory, size] : spare_) {
        // A much larger buffer is kept for a call that needs its size.
        if (!memory || size < bytes || size / 4 > bytes + kSmall) continue;
        return {this, std::move(memory), size};
      }
    }
    return {this, std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
  }

 private:
  static constexpr std::size_t kMost = 4, kSmall = 4096, kLarge = 64U << 20U;

  void give_back(std::unique_ptr<std::byte[]> memory, std::size_t bytes) {
    if (bytes > kLarge) return;
    const std::lock_guard lock(mutex_);
    std::erase_if(spare_, [](const auto& entry) { return !entry.first; });
    if (spare_.size() == kMost) spare_.erase(spare_.begin());
    spare_.emplace_back(std::move(memory), bytes);
  }

  std::mutex mutex_;
  std::vector<std::pair<std::unique_ptr<std::byte[]>, std::size_t>> spare_;  ///< oldest first
};

}  // namespace hips::comm
