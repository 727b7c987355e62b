#pragma once

#include <mpi.h>

#include <string>

#include <hips/types.hpp>

namespace hips::mpi {

/// What HiPS makes of a predefined type and operation of the host.
struct Reduction {
  enum class Verdict {
    kTake,
    kOtherType,   ///< HiPS has no such type
    kOtherOp,     ///< nor such an operation
    kNotAllowed,  ///< both are known, but the standard does not allow them together: the host's error
  };
  Verdict verdict = Verdict::kTake;
  DataType type = DataType::kFloat32;  ///< where it is taken
  ReduceOp op = ReduceOp::kSum;
};

/// Takes the predefined types of C and Fortran that hold what a type of HiPS holds - by size where the
/// standard leaves the size open (MPI_LONG, MPI_INTEGER) - with the operations that the standard's table of
/// predefined reductions allows for them. MPI_BYTE has bitwise operations only, C's bool logical ones only,
/// and Fortran's integers no logical ones. Fortran's LOGICAL is left to the host: what is .TRUE. is the
/// compiler's affair. MPI has no 16-bit floats and no average.
///
/// Threads  any; the table is filled at first use, after MPI_Init.
Reduction reduction_of(MPI_Datatype type, MPI_Op op);

/// "MPI_CHAR", or "a derived type".
std::string name_of_type(MPI_Datatype type);

/// "MPI_BAND", or "a user's op".
std::string name_of_op(MPI_Op op);

}  // namespace hips::mpi
