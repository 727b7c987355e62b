#pragma once

#include <mpi.h>

namespace hips::mpi {

// MPI_Alloc_mem and MPI_Free_mem: memory of hips_mem_alloc(), which ranks of a host read where it lies and
// NICs send from. A program may allocate in one language and free in another, so all bindings come here.

/// Memory for MPI_Alloc_mem, page-aligned whatever a hint asks for (mpi_minimum_memory_alignment of MPI 4 may
/// be more, and is ignored); null where the host is to give it: small pieces, which gain nothing, and when
/// HiPS keeps out of the way.
void* alloc_mem(MPI_Aint bytes);

/// Is it from alloc_mem()? Any host's memory is not. In a child of fork() all memory is, since nobody can
/// ask.
bool is_ours(const void* memory);

/// Gives memory of alloc_mem() back; an MPI error code, through the error handler of MPI_COMM_WORLD.
/// Nothing in a child of fork(), whose copy goes with it.
int free_mem(void* memory);

}  // namespace hips::mpi
