#pragma once

#include <string>

#include "lib/base/config/config.hpp"

namespace hips::mpi {

/// Whether native MPI may execute calls that HiPS could, and how that is decided.
struct GuardMode {
  bool has_trials = true;  ///< times both
  bool uses_table = true;  ///< reads HIPS_GUARD_TABLE
  std::string text;        ///< for the report: "on", "off: a topology or a plan is named"
};

/// The mode that the variables ask for. Reproducibility precedes the guard: decisions by timing differ
/// between runs, and native MPI reduces in an order of its own. A plan that the user names is executed; with
/// HIPS_GUARD=on it, too, has to be faster than native MPI.
///
/// Threads  pure; any thread.
GuardMode guard_mode_of(const Config& config);

}  // namespace hips::mpi
