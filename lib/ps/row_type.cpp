#include "lib/ps/row_type.hpp"

#include <array>

#include <fmt/format.h>

#include "lib/reduce/reduce.hpp"
#include "lib/reduce/user_op.hpp"

namespace hips::ps {
namespace {

template <typename T>
void add(std::byte* row, const std::byte* pushed, std::size_t count) {
  auto* to = reinterpret_cast<T*>(row);
  const auto* from = reinterpret_cast<const T*>(pushed);
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

std::size_t RowType::bytes() const {
  return size_of(type) * count;
}

std::string RowType::problem() const {
  const int value = static_cast<int>(type);
  if ((value < 0 || value >= kNumDataTypes) && !is_bytes(type))
    return fmt::format("invalid datatype {} (valid: 0 to {}, and bytes)", value, kNumDataTypes - 1);
  if (count == 0) return "count is 0; expected the elements of a row";
  if (bytes() > kMostRowBytes)
    return fmt::format("a row has {} bytes; at most {} are possible", bytes(), kMostRowBytes);
  const int op = static_cast<int>(update);
  const bool exists = is_user(update) ? reduce::is_user_op(update) : op >= 0 && op < kNumReduceOps;
  if (!exists) return fmt::format("invalid op {}", op);
  if (!applies_to(update, type) || update == ReduceOp::kAvg)
    return fmt::format("update {} does not exist for rows of {}", to_string(update), to_string(type));
  return {};
}

void RowType::apply(std::byte* row, const std::byte* pushed) const {
  // The usual rows are shorter than the set-up of the kernels for long vectors takes.
  if (update == ReduceOp::kSum && type == DataType::kFloat32) return add<float>(row, pushed, count);
  if (update == ReduceOp::kSum && type == DataType::kFloat64) return add<double>(row, pushed, count);
  const std::array<const std::byte*, 2> operands{pushed, row};
  reduce::fold(type, update, row, operands, count);
}

}  // namespace hips::ps
