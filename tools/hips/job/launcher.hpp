#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <hips/status.hpp>

namespace hips::cli {

/// Reads an environment variable; null if it is not set.
using GetEnv = std::function<const char*(const char*)>;

/// What started this process as one of several.
enum class LauncherKind {
  kNone,     ///< a shell, ssh or a batch script: a single process
  kOpenMpi,  ///< Open MPI's mpirun
  kPmix,     ///< srun --mpi=pmix or prun: Open MPI finds its peers through PMIx
  kHydra,    ///< MPICH's mpiexec.hydra and its derivatives: PMI-1
  kPmi2,     ///< srun --mpi=pmi2: MPICH can find its peers, Open MPI cannot
  kSrun,     ///< srun without PMI or PMIx: neither can
};

struct Launcher {
  LauncherKind kind = LauncherKind::kNone;
  Rank rank = 0;
  std::optional<Rank> size;        ///< if the launcher tells it
  std::optional<Rank> local_rank;  ///< on this node, if the launcher tells it
};

/// Recognises the launcher by its environment variables.
///
/// Threads  pure; any thread.
Launcher detect_launcher(const GetEnv& get_env);

/// The name for messages: "mpirun", "mpiexec.hydra", "srun", ...
std::string_view to_string(LauncherKind kind);

}  // namespace hips::cli
