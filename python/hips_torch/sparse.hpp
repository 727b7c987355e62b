#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace hips::torch_backend {

/// The sum of a sparse tensor over all ranks: each gets the elements of every rank, and adds them up itself.
class SparseSum {
 public:
  explicit SparseSum(const at::Tensor& tensor);

  /// What the ranks tell each other first: the number of elements, of sparse dimensions, and of bytes in the value of an element;
  /// a digest of type and sizes.
  [[nodiscard]] std::vector<std::int64_t> shape() const;
  /// The ranks' shapes, one after the other. Throws a ValueError where tensors are not alike.
  void set_shapes(const std::vector<std::int64_t>& shapes);

  // To be gathered: `bytes` bytes of each rank.
  [[nodiscard]] const void* data() const { return packed_.data_ptr(); }
  [[nodiscard]] std::uint64_t bytes() const { return static_cast<std::uint64_t>(packed_.nbytes()); }
  [[nodiscard]] void* gathered() const { return gathered_.data_ptr(); }
  /// Makes the sum the tensor's value.
  void copy_out() const;

 private:
  /// The elements of a rank in its part of what is packed or gathered.
  [[nodiscard]] at::Tensor indices_at(char* part, std::int64_t number) const;
  [[nodiscard]] at::Tensor values_at(char* part, std::int64_t number) const;

  at::Tensor tensor_, elements_, packed_, gathered_;
  std::vector<std::int64_t> numbers_;  ///< of elements, by rank
  std::int64_t most_ = 0;              ///< the largest of those
};

}  // namespace hips::torch_backend
