#include "python/hips_torch/tensors.hpp"

#include <c10/util/Exception.h>

#include <numeric>

namespace hips::torch_backend {
namespace {

hips_type_t type_of(const char* call, at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return HIPS_FLOAT32;
    case at::kDouble:
      return HIPS_FLOAT64;
    case at::kHalf:
      return HIPS_FLOAT16;
    case at::kBFloat16:
      return HIPS_BFLOAT16;
    case at::kInt:
      return HIPS_INT32;
    case at::kLong:
      return HIPS_INT64;
    case at::kShort:
      return HIPS_INT16;
    case at::kChar:
      return HIPS_INT8;
    case at::kByte:
    case at::kBool:
      return HIPS_UINT8;
    default:
      TORCH_CHECK_TYPE(false, "hips: ", call, ": tensors of ", c10::toString(type),
                       " cannot be reduced; expected float16, bfloat16, float32, float64, bool, or integers of 8 to 64 bits");
  }
}

hips_op_t op_of(const char* call, c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return HIPS_SUM;
    case c10d::ReduceOp::AVG:
      return HIPS_AVG;
    case c10d::ReduceOp::PRODUCT:
      return HIPS_PROD;
    case c10d::ReduceOp::MIN:
      return HIPS_MIN;
    case c10d::ReduceOp::MAX:
      return HIPS_MAX;
    case c10d::ReduceOp::BAND:
      return HIPS_BAND;
    case c10d::ReduceOp::BOR:
      return HIPS_BOR;
    case c10d::ReduceOp::BXOR:
      return HIPS_BXOR;
    default:
      TORCH_CHECK_VALUE(false, "hips: ", call, ": ReduceOp number ", static_cast<int>(op),
                        " is not supported; expected SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR");
  }
}

/// Of bytes that are 0 or 1; the results are, too.
hips_op_t op_of_booleans(const char* call, c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::MAX:
    case c10d::ReduceOp::BOR:
      return HIPS_LOR;
    case c10d::ReduceOp::PRODUCT:
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::BAND:
      return HIPS_LAND;
    case c10d::ReduceOp::BXOR:
      return HIPS_LXOR;
    default:
      TORCH_CHECK_VALUE(false, "hips: ", call, ": this ReduceOp has no meaning for booleans; expected SUM, PRODUCT, MIN, MAX, "
                                               "BAND, BOR or BXOR");
  }
}

}  // namespace

void check_dense(const char* call, const at::Tensor& tensor) {
  TORCH_CHECK_TYPE(tensor.device().is_cpu(), "hips: ", call, ": the tensor is on ", tensor.device(),
                   "; this backend takes CPU tensors (NCCL is for those of GPUs)");
  TORCH_CHECK_TYPE(tensor.layout() == at::kStrided, "hips: ", call, ": the tensor is sparse; expected a dense one");
}

at::Tensor& only_tensor(const char* call, std::vector<at::Tensor>& tensors) {
  check_number(call, "tensors", tensors.size(), 1);
  check_dense(call, tensors.front());
  return tensors.front();
}

void check_number(const char* call, const char* what, std::size_t number, std::size_t expected, const char* why) {
  TORCH_CHECK_VALUE(number == expected, "hips: ", call, ": ", number, " ", what, "; expected ", expected, why);
}

void check_alike(const char* call, const at::Tensor& tensor, const at::Tensor& other, bool same_size) {
  TORCH_CHECK_TYPE(tensor.scalar_type() == other.scalar_type(), "hips: ", call, ": tensors of ", tensor.scalar_type(), " and ",
                   other.scalar_type(), "; expected one type");
  TORCH_CHECK_VALUE(!same_size || tensor.numel() == other.numel(), "hips: ", call, ": tensors of ", tensor.numel(), " and ",
                    other.numel(), " elements; expected the same number");
}

void copy_values(const at::Tensor& to, const at::Tensor& from) {
  const at::NoGradGuard no_grad;
  if (!to.is_inference()) {
    to.copy_(from);
    return;
  }
  const c10::InferenceMode inference;
  to.copy_(from);
}

bool overlap(const at::Tensor& a, const at::Tensor& b) {
  // Of views with gaps the whole storage counts.
  if (!a.is_contiguous() || !b.is_contiguous()) return a.is_alias_of(b);
  const auto* const begin_a = static_cast<const char*>(a.data_ptr());
  const auto* const begin_b = static_cast<const char*>(b.data_ptr());
  return begin_a < begin_b + b.nbytes() && begin_b < begin_a + a.nbytes();
}

Reduction reduction_of(const char* call, const at::Tensor& tensor, const c10d::ReduceOp& op) {
  const auto kind = static_cast<c10d::ReduceOp::RedOpType>(op);
  const hips_type_t type = type_of(call, tensor.scalar_type());
  return {type, tensor.scalar_type() == at::kBool ? op_of_booleans(call, kind) : op_of(call, kind)};
}

Flat::Flat(const std::vector<at::Tensor>& tensors, bool copies_in) : tensors_(tensors) {
  bool in_place = true;
  const char* next = static_cast<const char*>(tensors.front().data_ptr());
  for (const at::Tensor& tensor : tensors) {
    bytes_.push_back(static_cast<std::uint64_t>(tensor.nbytes()));
    const bool is_next = tensor.numel() == 0 || tensor.data_ptr() == next;
    in_place = in_place && is_next && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
    next += tensor.nbytes();
  }
  if (in_place) {
    data_ = tensors.front().data_ptr();
    return;
  }
  const auto total = std::accumulate(bytes_.begin(), bytes_.end(), std::uint64_t{0});
  copy_ = at::empty({static_cast<std::int64_t>(total)}, at::TensorOptions().dtype(at::kByte));
  data_ = copy_.data_ptr();
  if (!copies_in) return;
  auto* to = static_cast<char*>(data_);
  for (const at::Tensor& tensor : tensors_) {
    copy_values(at::from_blob(to, tensor.sizes(), tensor.options()), tensor);
    to += tensor.nbytes();
  }
}

std::vector<std::uint64_t> Flat::elements() const {
  std::vector<std::uint64_t> elements;
  for (const at::Tensor& tensor : tensors_) elements.push_back(static_cast<std::uint64_t>(tensor.numel()));
  return elements;
}

void Flat::copy_out() const {
  if (!copy_.defined()) return;
  auto* from = static_cast<char*>(data_);
  for (const at::Tensor& tensor : tensors_) {
    copy_values(tensor, at::from_blob(from, tensor.sizes(), tensor.options()));
    from += tensor.nbytes();
  }
}

Padded::Padded(const std::vector<at::Tensor>& tensors, std::uint64_t room, bool copies_in)
    : tensors_(tensors), room_(room), vector_(at::zeros({static_cast<std::int64_t>(room * tensors.size())}, at::kByte)) {
  for (std::size_t i = 0; copies_in && i < tensors_.size(); ++i) copy_values(part(i), tensors_[i]);
}

at::Tensor Padded::part(std::size_t i) const {
  return at::from_blob(static_cast<char*>(vector_.data_ptr()) + i * room_, tensors_[i].sizes(), tensors_[i].options());
}

void Padded::copy_out() const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) copy_values(tensors_[i], part(i));
}

}  // namespace hips::torch_backend
