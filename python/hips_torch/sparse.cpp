#include "python/hips_torch/sparse.hpp"

#include <c10/util/Exception.h>

#include <algorithm>

#include "python/hips_torch/tensors.hpp"

namespace hips::torch_backend {

SparseSum::SparseSum(const at::Tensor& tensor) : tensor_(tensor), elements_(tensor.detach().coalesce()) {}

std::vector<std::int64_t> SparseSum::shape() const {
  std::int64_t value_bytes = elements_.values().element_size();
  for (const std::int64_t size : elements_.values().sizes().slice(1)) value_bytes *= size;
  std::uint64_t sizes = static_cast<std::uint64_t>(tensor_.scalar_type());
  for (const std::int64_t size : tensor_.sizes()) sizes = sizes * 1'000'003 + static_cast<std::uint64_t>(size);
  return {elements_._nnz(), elements_.sparse_dim(), value_bytes, static_cast<std::int64_t>(sizes)};
}

void SparseSum::set_shapes(const std::vector<std::int64_t>& shapes) {
  const std::vector<std::int64_t> mine = shape();
  for (std::size_t at = 0; at < shapes.size(); at += mine.size()) {
    TORCH_CHECK_VALUE(shapes[at + 1] == shapes[1] && shapes[at + 2] == shapes[2], "hips: all_reduce: rank ", at / mine.size(),
                      " has a sparse tensor of ", shapes[at + 1], " dimensions with ", shapes[at + 2],
                      " bytes in each value, rank 0 one of ", shapes[1], " with ", shapes[2]);
    TORCH_CHECK_VALUE(shapes[at + 3] == shapes[3], "hips: all_reduce: rank ", at / mine.size(),
                      " has a sparse tensor of another type or other sizes than rank 0");
    numbers_.push_back(shapes[at]);
  }
  most_ = *std::max_element(numbers_.begin(), numbers_.end());
  // The parts of all ranks begin at addresses for any type.
  constexpr std::int64_t kAlignment = 16;
  std::int64_t part_bytes = most_ * (mine[1] * static_cast<std::int64_t>(sizeof(std::int64_t)) + mine[2]);
  part_bytes = (part_bytes + kAlignment - 1) / kAlignment * kAlignment;
  packed_ = at::zeros({part_bytes}, at::kByte);
  gathered_ = at::empty({part_bytes * static_cast<std::int64_t>(numbers_.size())}, at::kByte);
  auto* const part = static_cast<char*>(packed_.data_ptr());
  indices_at(part, mine[0]).copy_(elements_.indices());
  values_at(part, mine[0]).copy_(elements_.values());
}

at::Tensor SparseSum::indices_at(char* part, std::int64_t number) const {
  return at::from_blob(part, {elements_.sparse_dim(), number}, at::kLong);
}

at::Tensor SparseSum::values_at(char* part, std::int64_t number) const {
  std::vector<std::int64_t> sizes = elements_.values().sizes().vec();
  sizes.front() = number;
  part += most_ * elements_.sparse_dim() * static_cast<std::int64_t>(sizeof(std::int64_t));
  return at::from_blob(part, sizes, elements_.values().options());
}

void SparseSum::copy_out() const {
  std::vector<at::Tensor> indices, values;
  auto* part = static_cast<char*>(gathered_.data_ptr());
  for (const std::int64_t number : numbers_) {
    indices.push_back(indices_at(part, number));
    values.push_back(values_at(part, number));
    part += packed_.nbytes();
  }
  copy_values(tensor_, at::sparse_coo_tensor(at::cat(indices, 1), at::cat(values, 0), tensor_.sizes()).coalesce());
}

}  // namespace hips::torch_backend
