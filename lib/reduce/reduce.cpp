#include "lib/reduce/reduce.hpp"

#include <cstring>

#include "lib/reduce/cpu.hpp"
#include "lib/reduce/kernels.hpp"
#include "lib/reduce/user_op.hpp"

namespace hips::reduce {
namespace {

const KernelTable& choose() {
#if defined(HIPS_HAVE_X86_KERNELS)
  // All ranks of a job compute the same bits with any of the tables: every element is folded by the same
  // IEEE operations in the same order, and halves are converted to the same bits. Only the payload of a NaN
  // made of two NaNs is the hardware's choice, and there it is the first operand's.
  if (runs_avx512()) return *kernels_avx512();
  if (runs_avx2()) return *kernels_avx2();
#endif
  return *kernels_baseline();
}

/// Beyond the library's operations there are functions only: one comparison in every fold, not two.
constexpr bool by_function(ReduceOp op) {
  return op > ReduceOp::kLxor;
}
static_assert(static_cast<int>(ReduceOp::kLxor) == kNumReduceOps - 1);

const KernelTable& kernels() {
  static const KernelTable& table = choose();
  return table;
}

}  // namespace

void fold(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
          std::size_t elements) {
  if (elements == 0) return;
  // One operand is the result, but for logical operations, which make it 0 or 1.
  if (srcs.size() == 1 && (op < ReduceOp::kLand || by_function(op))) {
    if (srcs[0] != dst) std::memcpy(dst, srcs[0], elements * size_of(type));
    return;
  }
  if (by_function(op)) [[unlikely]]
    return fold_user(type, op, dst, srcs, elements);
  kernels().fold.at(type, op)(dst, srcs.data(), srcs.size(), elements);
}

void fold_streaming(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
                    std::size_t elements) {
  if (elements == 0) return;
  if (by_function(op)) [[unlikely]]
    return fold_user(type, op, dst, srcs, elements);
  kernels().fold_streaming.at(type, op)(dst, srcs.data(), srcs.size(), elements);
}

void divide(DataType type, std::byte* data, std::size_t elements, std::size_t divisor) {
  if (divisor > 1) kernels().divide[static_cast<int>(type)](data, elements, divisor);
}

void copy(std::byte* dst, const std::byte* src, std::size_t bytes) {
  std::memcpy(dst, src, bytes);
}

void copy_streaming(std::byte* dst, const std::byte* src, std::size_t bytes) {
  kernels().copy_streaming(dst, src, bytes);
}

}  // namespace hips::reduce
