#pragma once

namespace hips::mpi {

/// Has the host MPI move our calls on whenever it moves its own: a rank that has started an MPI_Iallreduce
/// and waits in MPI_Recv must not hold up peers which wait for the former.
///
/// By what Open MPI offers its own components; false where the host has no such thing. From the first
/// non-blocking call on, until unhook_host_progress().
bool hook_host_progress();
void unhook_host_progress();

}  // namespace hips::mpi
