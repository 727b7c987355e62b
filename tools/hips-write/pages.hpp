#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <span>
#include <utility>

namespace hips::write {

/// Whole pages of memory, zeroed.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    void* at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    address_ = static_cast<std::byte*>(at);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { (void)munmap(address_, bytes_); }

  [[nodiscard]] std::span<std::byte> all() const { return {address_, bytes_}; }

 private:
  std::byte* address_ = nullptr;
  std::size_t bytes_;
};

}  // namespace hips::write
