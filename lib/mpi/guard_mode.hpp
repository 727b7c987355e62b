#pragma once

#include <string>

#include "lib/base/config.hpp"

namespace hips::mpi {

/// Whether the host MPI may carry calls that HiPS could, and how that is found out.
struct GuardMode {
  bool tries = true;       ///< times both
  bool uses_table = true;  ///< reads HIPS_GUARD_TABLE
  std::string text;        ///< for the report: "on", "off: a topology or a plan is named"
};

/// What the variables say. Reproducibility comes before the guard: what timing decides differs between runs,
/// and the host has an order of its own. A plan that somebody named is to run; with HIPS_GUARD=on it, too,
/// must be faster than the host.
///
/// Threads  pure; any thread.
GuardMode guard_mode(const Config& config);

}  // namespace hips::mpi
