#pragma once

#include <cstddef>
#include <cstdint>

#include <hips/types.hpp>

namespace hips::reduce {

/// Type of all kernels: reduces `num_srcs` inputs of `elements` elements into dst, left to right.
using Kernel = void (*)(std::byte* dst, const std::byte* const* srcs, std::size_t num_srcs,
                        std::size_t elements);

/// Kernels by ReduceOp; null if the operation does not exist for the type.
struct KernelRow {
  Kernel of[kNumReduceOps];
};

/// Kernels by DataType.
struct KernelGrid {
  KernelRow of[kNumDataTypes];

  [[nodiscard]] constexpr Kernel at(DataType type, ReduceOp op) const {
    return of[static_cast<int>(type)].of[static_cast<int>(op)];
  }
};

/// Kernels of one instruction set.
struct KernelTable {
  KernelGrid fold;
  KernelGrid fold_streaming;  ///< with streaming stores, which bypass the caches
  void (*divide[kNumDataTypes])(std::byte* data, std::size_t elements, std::size_t divisor);
  void (*copy_streaming)(std::byte* dst, const std::byte* src, std::size_t bytes);
};

// One table for each instruction set that kernels.cpp is compiled for; nullptr if the compiler does not
// support it.
const KernelTable* kernels_baseline();
const KernelTable* kernels_avx2();
const KernelTable* kernels_avx512();

}  // namespace hips::reduce
