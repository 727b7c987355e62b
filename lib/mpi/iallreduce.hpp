#pragma once

#include <mpi.h>

#include "lib/mpi/reduction_call.hpp"

namespace hips::mpi {

/// MPI_Iallreduce as the program called it, handles and special addresses already those of C.
///
/// HiPS takes what it would take of MPI_Allreduce, on communicators that have been set up: a non-blocking
/// call waits for nobody, so it cannot set one up itself, which takes a first blocking collective or
/// initialisation of a persistent call. Where the guard has a verdict for the blocking call, it holds; while
/// it has none, HiPS takes the call, and no trial is made of it.
///
/// Threads  as MPI_Iallreduce.
int iallreduce(const ReductionCall& call, MPI_Request* request);

/// What a program calls to have a persistent one: MPI_Allreduce_init, or MPIX_Allreduce_init before it.
struct AllreduceInit {
  using HostFunction = int(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request*);
  using LargeHostFunction = int(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                                MPI_Request*);
  const char* name;
  // Null where the host has none; then nothing calls it.
  HostFunction* host;
  LargeHostFunction* host_large;  ///< MPI_Allreduce_init_c
};

/// The same for a persistent call, which is decided here for all its starts. May wait for the other ranks.
int allreduce_init(const AllreduceInit& init, const ReductionCall& call, MPI_Info info, MPI_Request* request);

}  // namespace hips::mpi
