#pragma once

#include <mpi.h>

#include <optional>

namespace hips::mpi {

// MPI_Alloc_mem and MPI_Free_mem: memory of hips_mem_alloc(), which ranks of a node read directly and NICs
// send from. A program may allocate in one language and free in another, so all bindings call these.

/// Stores the address of page-aligned memory in `*pointer`, whatever a hint asks for: it is not read, so that
/// mpi_minimum_memory_alignment of MPI 4, which may be larger than a page, has no effect. An MPI error code,
/// or empty where native MPI has to allocate: small pieces, which gain nothing, a null `pointer`, while HiPS is
/// inactive, and in programs that free such memory without having used it in a collective of HiPS.
std::optional<int> alloc_mem(MPI_Aint size, MPI_Info hint, void* pointer);

/// Frees memory of alloc_mem(); an MPI error code, passed through the error handler of MPI_COMM_WORLD. Empty
/// for memory of native MPI. In a child of fork() it does nothing for any memory, as the child's copy ends
/// with the child.
std::optional<int> free_mem(void* base);

}  // namespace hips::mpi
