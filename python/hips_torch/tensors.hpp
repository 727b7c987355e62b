#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include <hips/hips.h>

#include "python/hips_torch/torch_api.hpp"

namespace hips::torch_backend {

/// Throws a TypeError or ValueError that begins with the name of the call, unless `tensor` is a dense CPU tensor.
void check_dense(const char* call, const at::Tensor& tensor);
/// The same, for the calls that take a list of one tensor.
at::Tensor& only_tensor(const char* call, std::vector<at::Tensor>& tensors);
/// Throws a ValueError unless there are `expected` tensors.
void check_number(const char* call, const char* what, std::size_t number, std::size_t expected, const char* why = "");
/// Throws a ValueError unless both have the same type; `same_size`: and the same number of elements.
void check_alike(const char* call, const at::Tensor& tensor, const at::Tensor& other, bool same_size);

/// Copies values, whatever thread does it: no autograd graph notes it, and tensors of inference mode may change.
void copy_values(const at::Tensor& to, const at::Tensor& from);
/// Whether the tensors have bytes in common.
bool overlap(const at::Tensor& a, const at::Tensor& b);

/// How a reduction of tensors is expressed in HiPS. Booleans are bytes whose sum is a logical or.
struct Reduction {
  hips_type_t type;
  hips_op_t op;
};
Reduction reduction_of(const char* call, const at::Tensor& tensor, const c10d::ReduceOp& op);

/// Several tensors that a call takes as one vector: in place where they lie one behind the other in memory, as chunks of one
/// tensor do; else in a copy.
class Flat {
 public:
  /// The vector begins with the tensors' values where `copies_in`.
  Flat(const std::vector<at::Tensor>& tensors, bool copies_in);

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] const std::vector<std::uint64_t>& bytes() const { return bytes_; }
  /// Number of elements of each tensor.
  [[nodiscard]] std::vector<std::uint64_t> elements() const;
  /// Copies the vector to the tensors, where it is not in place.
  void copy_out() const;

 private:
  std::vector<at::Tensor> tensors_;
  std::vector<std::uint64_t> bytes_;
  at::Tensor copy_;  ///< undefined where in place
  void* data_ = nullptr;
};

/// Several tensors in one vector with the same room for each.
class Padded {
 public:
  Padded(const std::vector<at::Tensor>& tensors, std::uint64_t room, bool copies_in);

  [[nodiscard]] void* data() const { return vector_.data_ptr(); }
  void copy_out() const;

 private:
  [[nodiscard]] at::Tensor part(std::size_t i) const;

  std::vector<at::Tensor> tensors_;
  std::uint64_t room_;
  at::Tensor vector_;
};

/// A tensor that a call takes as one vector: itself where its values are contiguous in memory, else a copy.
class Dense {
 public:
  explicit Dense(const at::Tensor& tensor)
      : tensor_(tensor), vector_(tensor.detach().resolve_conj().resolve_neg().contiguous()) {}

  [[nodiscard]] void* data() const { return vector_.data_ptr(); }
  [[nodiscard]] std::uint64_t elements() const { return static_cast<std::uint64_t>(vector_.numel()); }
  [[nodiscard]] std::uint64_t bytes() const { return static_cast<std::uint64_t>(vector_.nbytes()); }
  void copy_out() const {
    if (!vector_.is_alias_of(tensor_)) copy_values(tensor_, vector_);
  }

 private:
  at::Tensor tensor_, vector_;
};

}  // namespace hips::torch_backend
