#include "lib/reduce/reduce.hpp"

#include <cstring>

#include "lib/reduce/cpu.hpp"
#include "lib/reduce/kernels.hpp"
#include "lib/reduce/user_op.hpp"

namespace hips::reduce {
namespace {

const KernelTable& choose() {
#if defined(HIPS_HAVE_X86_KERNELS)
  // All tables compute the same bits: they apply the same IEEE operations to an element in the same order,
  // and convert 16-bit floats to the same bits. Only the payload of a NaN that combines two NaNs is the
  // hardware's choice; x86 takes that of the first operand.
  if (runs_avx512()) return *kernels_avx512();
  if (runs_avx2()) return *kernels_avx2();
#endif
  return *kernels_baseline();
}

/// Values above the library's operations are functions, so one comparison is enough in every fold().
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
  // A single operand is the result, except for logical operations, which map it to 0 or 1.
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
