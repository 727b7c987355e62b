#pragma once

#include <mpi.h>

#include "lib/mpi/count.hpp"

namespace hips::mpi {

/// MPI_Allreduce as the program called it, handles and special addresses already those of C.
///
/// HiPS takes the call where the communicator is an intra-communicator of two ranks or more with a plan, the
/// type and the op are predefined ones that HiPS has, and the count is above zero: all of it equal on all
/// ranks by MPI's rules. Every other call goes to PMPI_Allreduce as it is.
///
/// Where the guard is on (guard_mode.hpp), the first such calls of each class are trials of the host and of
/// HiPS in turn, and the loser carries none of that class again. What ranks pass is compared in every call of
/// HiPS and before every trial; a rank that waits in HiPS finds peers that went to the host. Only ranks that
/// are all at the host, after its victory, are beyond HiPS: different arguments, a dead rank and HIPS_TIMEOUT
/// mean there what they mean without HiPS.
///
/// Threads  as MPI_Allreduce.
int allreduce(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

}  // namespace hips::mpi
