#pragma once

#include <string>
#include <vector>

namespace hips::mpi {

/// A function or object of the MPI library of this process, whichever MPI that is: "PMPI_Allreduce",
/// "ompi_mpi_int"; null when there is none. Also finds libraries that were loaded with local scope (Python's
/// modules).
///
/// Threads  any.
void* native_symbol(const char* name);

/// Whether an MPI library is loaded already; loads none.
bool native_is_loaded();

/// Paths of all objects of this process, program and libraries; "" is the program.
///
/// Threads  any.
std::vector<std::string> loaded_objects();

/// The dlopen() handle of an object that is loaded already; null where it is not.
void* handle_of_loaded(const std::string& path);

}  // namespace hips::mpi
