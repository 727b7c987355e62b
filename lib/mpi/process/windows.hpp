#pragma once

#include <atomic>

namespace hips::mpi {

// Windows of one-sided communication stay native MPI's. A rank that reads or writes one may need the progress of
// the target, which may wait in a collective of HiPS meanwhile: such waits then let native MPI progress often
// (CommunicatorOptions::often). MPICH's mpi_f08 bypasses the notes of MPI_Win_allocate and MPI_Win_create_dynamic.

/// The program makes a window.
void note_window();
/// Whether it has made one. Never false again.
const std::atomic<bool>& has_windows();

}  // namespace hips::mpi
