#pragma once

#include <cstdint>

namespace hips::python::dlpack {

/// The structures of DLPack 0.x, as its specification lays them out (https://dmlc.github.io/dlpack/latest/c_api.html).
struct Device {
  std::int32_t type = 0, id = 0;
};
inline constexpr std::int32_t kCpu = 1;

struct Type {
  std::uint8_t code = 0, bits = 0;
  std::uint16_t lanes = 0;
};
enum Code : std::uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

struct Tensor {
  void* data = nullptr;
  Device device;
  std::int32_t num_dimensions = 0;
  Type type;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  ///< in elements; null: contiguous
  std::uint64_t byte_offset = 0;
};

struct ManagedTensor {
  Tensor tensor;
  void* context = nullptr;
  void (*release)(ManagedTensor* self) = nullptr;
};

}  // namespace hips::python::dlpack
