#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include <hips/hips.h>

namespace hips::mpi {

/// The type of HiPS that holds the same values, for the predefined types of C and Fortran that have one; by
/// size where the standard leaves the size open (MPI_LONG, MPI_INTEGER). Nothing for all other types.
///
/// Threads  any; the table is filled at first use, after MPI_Init.
std::optional<hips_type_t> type_of(MPI_Datatype type);

/// The same for MPI_SUM, MPI_PROD, MPI_MIN and MPI_MAX.
std::optional<hips_op_t> op_of(MPI_Op op);

/// "MPI_CHAR", or "a derived type".
std::string name_of_type(MPI_Datatype type);

/// "MPI_BAND", or "a user's op".
std::string name_of_op(MPI_Op op);

}  // namespace hips::mpi
