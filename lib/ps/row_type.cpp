#include "lib/ps/row_type.hpp"

#include <array>

#include "lib/reduce/reduce.hpp"

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

void RowType::apply(std::byte* row, const std::byte* pushed) const {
  // The usual rows are shorter than the set-up of the kernels for long vectors takes.
  if (update == ReduceOp::kSum && type == DataType::kFloat32) return add<float>(row, pushed, count);
  if (update == ReduceOp::kSum && type == DataType::kFloat64) return add<double>(row, pushed, count);
  const std::array<const std::byte*, 2> operands{pushed, row};
  reduce::fold(type, update, row, operands, count);
}

}  // namespace hips::ps
