#pragma once

#include <cstdint>
#include <string>

#include <hips/types.hpp>

namespace hips::perf {

/// An allreduce to be held against ours.
class Contender {
 public:
  virtual ~Contender() = default;
  /// What it is, on one line.
  [[nodiscard]] virtual std::string name() const = 0;
  /// The same in at most seven characters, above its column.
  [[nodiscard]] virtual std::string label() const = 0;
  /// Does it have this type with this operation?
  [[nodiscard]] virtual bool has(DataType type, ReduceOp op) const = 0;
  virtual void allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) = 0;
};

}  // namespace hips::perf
