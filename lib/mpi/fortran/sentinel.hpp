#pragma once

namespace hips::mpi {

/// What an address of Fortran means: MPI_IN_PLACE, MPI_BOTTOM and MPI_STATUS(ES)_IGNORE are addresses of
/// common blocks there. The program, native MPI's libraries and every module loaded later may each have a
/// copy.
///
/// Threads  any.
enum class Sentinel { kNone, kInPlace, kBottom, kStatusIgnore };
Sentinel fortran_sentinel(const void* buffer);

}  // namespace hips::mpi
