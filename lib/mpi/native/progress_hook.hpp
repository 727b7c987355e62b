#pragma once

namespace hips::mpi {

/// Makes native MPI progress our outstanding calls whenever it progresses its own: a rank that has started an
/// MPI_Iallreduce and waits in MPI_Recv must not block peers that wait for the MPI_Iallreduce.
///
/// Uses the callback that Open MPI offers its own components. MPICH offers none: there a progress thread of
/// HiPS does it (CommunicatorOptions::progress_thread). In effect from the first non-blocking call until
/// remove_progress_hook().
void add_progress_hook();
void remove_progress_hook();

/// Whether native MPI has such a callback.
bool native_has_progress_hook();

}  // namespace hips::mpi
