#pragma once

namespace hips::mpi {

/// How Fortran says MPI_IN_PLACE, MPI_BOTTOM and MPI_STATUS(ES)_IGNORE: by the addresses of common blocks.
/// The program, the host's libraries and every module loaded later may each have a copy.
///
/// Threads  any.
enum class Sentinel { kNone, kInPlace, kBottom, kStatusIgnore };
Sentinel fortran_sentinel(const void* buffer);

}  // namespace hips::mpi
