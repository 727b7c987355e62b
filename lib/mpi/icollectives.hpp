#pragma once

#include <mpi.h>

#include "lib/mpi/count.hpp"

namespace hips::mpi {

// The non-blocking collectives beside MPI_Iallreduce, as the program called them, handles and special
// addresses already those of C.
//
// HiPS takes what it would take of the blocking form (collectives.hpp), on communicators that have been set
// up: as MPI_Iallreduce (iallreduce.hpp), these wait for nobody, and what the guard has found out for the
// blocking form holds. What has to be packed is packed here, and unpacked by whatever completes the request;
// the program may free types, and arrays of counts, meanwhile.
//
// Threads  as the functions of MPI.

int ibarrier(MPI_Comm comm, MPI_Request* request);
int ibcast(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request);
int ireduce(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
            MPI_Request* request);
int ireduce_scatter(const void* in, void* out, Counts counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request* request);
int ireduce_scatter_block(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          MPI_Request* request);
int iallgather(const void* in, Count in_count, MPI_Datatype in_type, void* out, Count out_count,
               MPI_Datatype out_type, MPI_Comm comm, MPI_Request* request);
int iallgatherv(const void* in, Count in_count, MPI_Datatype in_type, void* out, Counts counts,
                Places displacements, MPI_Datatype out_type, MPI_Comm comm, MPI_Request* request);

}  // namespace hips::mpi
