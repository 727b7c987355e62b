#pragma once

#include <cstdint>
#include <string>

#include <hips/types.hpp>

namespace hips::perf {

/// Another allreduce, with which that of HiPS is compared.
class OtherAllreduce {
 public:
  virtual ~OtherAllreduce() = default;
  /// Its name, one line.
  [[nodiscard]] virtual std::string name() const = 0;
  /// A column title of at most seven characters.
  [[nodiscard]] virtual std::string label() const = 0;
  /// Does it support this type with this operation?
  [[nodiscard]] virtual bool has(DataType type, ReduceOp op) const = 0;
  virtual void allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) = 0;
};

}  // namespace hips::perf
