#include "lib/ps/row_type.hpp"

#include <array>

#include <fmt/format.h>

#include "lib/reduce/reduce.hpp"
#include "lib/reduce/user_op.hpp"

namespace hips::ps {

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

void RowType::fold(std::byte* row, const std::byte* pushed) const {
  const std::array<const std::byte*, 2> operands{pushed, row};
  reduce::fold(type, update, row, operands, count);
}

}  // namespace hips::ps
