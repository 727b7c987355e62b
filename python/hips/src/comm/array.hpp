#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>

#include <hips/hips.h>

namespace hips::python {

/// Memory of a Python object, borrowed for a call: of the buffer protocol (numpy, array.array, memoryview) or of DLPack
/// (PyTorch's CPU tensors). It is given back with the last copy of this.
///
/// Threads  made and destroyed with Python's lock.
class Array {
 public:
  Array() = default;
  /// Borrows contiguous memory, row by row.
  ///
  /// `what`   for messages: "allreduce: out".
  /// Errors   TypeError: neither protocol, or memory of a GPU. ValueError: not contiguous, or read-only where it is written.
  static Array of(pybind11::handle object, const std::string& what, bool is_written);

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }  ///< elements
  [[nodiscard]] std::uint64_t element_bytes() const { return element_bytes_; }
  [[nodiscard]] std::uint64_t bytes() const { return count_ * element_bytes_; }
  /// As the library names it; HIPS_BYTES() of types that it only moves.
  [[nodiscard]] hips_type_t type() const { return type_; }
  [[nodiscard]] const std::string& type_name() const { return type_name_; }  ///< for messages: "float32"
  [[nodiscard]] bool is_bool() const { return type_name_ == "bool"; }
  [[nodiscard]] bool can_be_reduced() const { return (static_cast<int>(type_) & 0xff) != 0xff; }

 private:
  static Array of_buffer(pybind11::handle object, const std::string& what, bool is_written);
  static Array of_dlpack(pybind11::handle object, const std::string& what);
  void set_type(char kind, std::uint64_t element_bytes, const std::string& name_of_others);

  void* data_ = nullptr;
  std::uint64_t count_ = 0, element_bytes_ = 1;
  hips_type_t type_ = HIPS_UINT8;
  std::string type_name_;
  std::shared_ptr<void> lease_;
};

}  // namespace hips::python
