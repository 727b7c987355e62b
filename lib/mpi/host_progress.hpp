#pragma once

namespace hips::mpi {

/// Has the host MPI move our calls on whenever it moves its own: a rank that has started an MPI_Iallreduce
/// and waits in MPI_Recv must not hold up peers which wait for the former.
///
/// By what Open MPI offers its own components. MPICH offers nothing of the kind: there a thread of HiPS moves
/// them (CommunicatorOptions::progress_thread). From the first non-blocking call on, until
/// unhook_host_progress().
void hook_host_progress();
void unhook_host_progress();

/// Could the host?
bool host_has_progress_hook();

}  // namespace hips::mpi
