#pragma once

#include <string>

#include "lib/base/config/config.hpp"

namespace hips::mpi {

/// Whether native MPI may execute calls that HiPS could, and how that is decided.
struct GuardMode {
  bool has_trials = true;  ///< times both
  bool uses_table = true;  ///< reads HIPS_GUARD_TABLE
  std::string text;  ///< for the report: "on", "off: a topology or a plan is named for ranks on one node"
};

/// The mode that the variables ask for. Reproducibility precedes the guard: decisions by timing differ
/// between runs, and native MPI reduces in an order of its own. A plan that the user names is executed; with
/// HIPS_GUARD=on it, too, has to be faster than native MPI. A topology that describes the wiring of several nodes is no such
/// plan: who knows his wiring must not become slower by saying it. On one node it stands for others, to see its plan run.
///
/// Threads  pure; any thread.
GuardMode guard_mode_of(const Config& config, bool one_node);

}  // namespace hips::mpi
