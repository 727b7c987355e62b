#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/config/config.hpp"

namespace hips::comm {

/// The task of srun that this process is, by Slurm's variables.
struct SlurmStep {
  std::string rank, size;  ///< as Slurm writes them
  std::string first_node;  ///< the node of task 0
  /// Where rank 0 listens: the first port that Slurm has reserved for the step (MpiParams=ports=...), else one
  /// computed from the ids of job and step, the same for all tasks and different for the next step.
  std::uint16_t port = 0;
  std::string name;  ///< "1234.0": job and step
};

/// None outside of a step of srun: Slurm sets its variables in batch scripts and shells of salloc, too, where this
/// process is no task.
///
/// Threads  pure; any thread.
/// Source   "output environment variables" in srun's manual page.
std::optional<SlurmStep> slurm_step(const Environment& environment);

/// The first host name of a Slurm list: "node003" of "node[003-005,9],other".
std::string first_host(std::string_view list);

}  // namespace hips::comm
