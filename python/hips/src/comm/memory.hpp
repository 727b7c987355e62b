#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>

#include <hips/hips.h>

#include "python/hips/src/comm/error.hpp"

namespace hips::python {

/// Registered memory (hips_mem_alloc()), which numpy sees by the buffer protocol.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes) { throw_if_failed(hips_mem_alloc(bytes, &address_)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { (void)hips_mem_free(address_); }

  [[nodiscard]] pybind11::buffer_info view() const {
    return {static_cast<unsigned char*>(address_), static_cast<pybind11::ssize_t>(bytes_)};
  }

 private:
  void* address_ = nullptr;
  std::size_t bytes_;
};

}  // namespace hips::python
