#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <hips/status.hpp>

namespace hips::cli {

/// Reads a variable of the environment; null where it is not set.
using GetEnv = std::function<const char*(const char*)>;

/// Who started this process as one of several.
enum class LauncherKind {
  kNone,     ///< a shell, ssh, a batch script: one process that knows no others
  kOpenMpi,  ///< Open MPI's mpirun
  kPmix,     ///< srun --mpi=pmix, prun: Open MPI finds its peers through PMIx
  kHydra,    ///< MPICH's mpiexec.hydra and its relatives: PMI-1
  kPmi2,     ///< srun --mpi=pmi2: MPICH may find its peers, Open MPI cannot
  kSrun,     ///< srun without either: neither can
};

struct Launcher {
  LauncherKind kind = LauncherKind::kNone;
  Rank rank = 0;
  std::optional<Rank> size;        ///< where the launcher says it
  std::optional<Rank> local_rank;  ///< on this host, where the launcher says it
};

/// Tells the launcher from its variables.
///
/// Threads  pure; any thread.
Launcher detect_launcher(const GetEnv& get_env);

/// "mpirun", "mpiexec.hydra", "srun", ...: what a message calls it.
std::string_view to_string(LauncherKind kind);

}  // namespace hips::cli
