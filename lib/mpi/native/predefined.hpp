#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include <hips/types.hpp>

namespace hips::mpi {

/// Whether HiPS can execute a call, or why native MPI has to. Decided by what MPI makes equal on all ranks,
/// or by an error of this rank's own.
enum class Eligibility : std::uint8_t {
  kEligible,
  kOtherType,        ///< a reduction of a type that HiPS does not have
  kOtherOp,          ///< by an operation that it does not have
  kOpNotForType,     ///< it has both, but the standard does not allow them together: native MPI's error
  kNothingToMove,    ///< no data
  kUnequalSizes,     ///< what this rank sends is not as long as what it receives from itself
  kInvalidArgument,  ///< native MPI refuses the call by the arguments of this rank alone
};
inline constexpr int kNumEligibilities = 7;

/// No memory has more bytes, and below this sums and products are far from the limits of 64 bits.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 47;

/// Whether there can be `count` elements of `size` bytes.
inline bool is_valid_count(std::int64_t count, std::int64_t size) {
  std::int64_t bytes = 0;  // A division would take as long as the rest of a small call's checks.
  return count >= 0 && !__builtin_mul_overflow(count, size <= 1 ? 1 : size, &bytes) && bytes <= kMostBytes;
}

/// A predefined type and operation of native MPI as HiPS has them.
struct Reduction {
  Eligibility eligibility = Eligibility::kEligible;
  DataType type = DataType::kFloat32;  ///< where it is eligible, as what follows
  ReduceOp op = ReduceOp::kSum;
  std::uint32_t size = 0;         ///< bytes of an element of the program
  std::uint32_t parts = 1;        ///< elements of HiPS in one of the program: two in a complex number
  std::uint64_t most_counts = 0;  ///< largest valid count; 0 where it is not eligible
};

/// Knows the predefined types of C, C++ and Fortran with the operations that the standard's table of predefined
/// reductions allows for them, and pairs with MPI_MINLOC and MPI_MAXLOC.
///
/// Numbers of a size that HiPS has - by size where the standard leaves the size open (MPI_LONG, MPI_INTEGER) - are reduced by
/// kernels; the sum of complex numbers is that of twice as many real ones. Everything else, such as Fortran's LOGICAL, whose
/// .TRUE. the compiler decides, is reduced by functions of native MPI (local_reduction.hpp), as elements of bytes. MPI has
/// no 16-bit floats and no average. A linear search; see reduction_of().
///
/// Threads  any; the table is filled at first use, after MPI_Init.
Reduction find_reduction(MPI_Datatype type, MPI_Op op);

/// Whether it is null or of native MPI, and not a function of the program.
bool is_predefined_op(MPI_Op op);

/// "MPI_CHAR", or "a derived type".
std::string name_of_type(MPI_Datatype type);

/// "MPI_BAND", or "a user's op".
std::string name_of_op(MPI_Op op);

}  // namespace hips::mpi
