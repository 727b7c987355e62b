#pragma once

#include <mpi.h>

#include "lib/mpi/count.hpp"

namespace hips::mpi {

// The blocking collectives beside MPI_Allreduce, as the program called them, handles and special addresses
// already those of C.
//
// HiPS takes a call on an intra-communicator of two ranks or more that has a plan, where something is to be
// moved. Reductions: of predefined types and ops that HiPS has, as MPI_Allreduce. Data that is only moved: of
// any type, since its bytes are what MPI makes equal on all ranks; what is not one predefined type without
// gaps is packed and unpacked by the host. A barrier is taken where an earlier collective has made a plan:
// setting one up for barriers alone does not pay. Every other call goes to the host as it is; the guard
// decides as for MPI_Allreduce, by kind of call and size.
//
// Threads  as the functions of MPI.

int barrier(MPI_Comm comm);
int bcast(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm);
int reduce(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int reduce_scatter(const void* in, void* out, Counts counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int reduce_scatter_block(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int allgather(const void* in, Count in_count, MPI_Datatype in_type, void* out, Count out_count,
              MPI_Datatype out_type, MPI_Comm comm);
int allgatherv(const void* in, Count in_count, MPI_Datatype in_type, void* out, Counts counts,
               Places displacements, MPI_Datatype out_type, MPI_Comm comm);

}  // namespace hips::mpi
