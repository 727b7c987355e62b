#pragma once

#include <cstdint>

#include <hips/half.hpp>
#include <hips/types.hpp>

namespace hips {

/// Calls `body` with a value of the C++ type that `type` names: visit_type(type, [](auto zero) { ... }). No
/// other place maps a DataType to C++ types.
template <typename Body>
auto visit_type(DataType type, Body&& body) {
  switch (type) {
    case DataType::kInt8:
      return body(std::int8_t{});
    case DataType::kInt16:
      return body(std::int16_t{});
    case DataType::kInt32:
      return body(std::int32_t{});
    case DataType::kInt64:
      return body(std::int64_t{});
    case DataType::kUint8:
      return body(std::uint8_t{});
    case DataType::kUint16:
      return body(std::uint16_t{});
    case DataType::kUint32:
      return body(std::uint32_t{});
    case DataType::kUint64:
      return body(std::uint64_t{});
    case DataType::kFloat16:
      return body(Float16{});
    case DataType::kBfloat16:
      return body(Bfloat16{});
    case DataType::kFloat32:
      return body(float{});
    case DataType::kFloat64:
      break;
  }
  return body(double{});
}

}  // namespace hips
