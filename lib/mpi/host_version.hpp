#pragma once

#include <string>
#include <string_view>

namespace hips::mpi {

/// What MPI_Get_library_version says, in a few words: "Open MPI v4.1.4" of "Open MPI v4.1.4, package: ...",
/// "MPICH 4.0.2" of "MPICH Version:\t4.0.2" and further lines.
///
/// Threads  pure; any thread.
std::string host_version_of(std::string_view library_version);

}  // namespace hips::mpi
