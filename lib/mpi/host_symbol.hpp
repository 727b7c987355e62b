#pragma once

namespace hips::mpi {

/// A function or object of the MPI library of this process, whatever MPI it is: "PMPI_Allreduce",
/// "ompi_mpi_int"; null when there is none. Also finds what was loaded with local scope (Python's modules).
///
/// Threads  any.
void* host_symbol(const char* name);

/// True when an MPI library is already there; loads none.
bool host_is_loaded();

}  // namespace hips::mpi
