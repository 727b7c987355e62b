#pragma once

#include <optional>
#include <string>

#include <hips/status.hpp>

#include "lib/base/result.hpp"

namespace hips::mpi {

/// The wiring that a communicator gets.
struct TopologyChoice {
  std::optional<std::string> spec;  ///< "bcube:3,1"; none: nobody named one, HiPS chooses
  bool is_users = true;             ///< false: a plan of its own, because the user's wiring has another size
};

/// Which topology a communicator of `comm_size` ranks gets where the user named `spec` (HIPS_TOPO).
///
/// The user's, where the ranks are as many; the user's with m ranks on each server, where MPI_COMM_WORLD has
/// m times as many ranks as servers; else one switch for all. None where the user named none. Depends only on
/// what all ranks have in common.
///
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: a malformed spec; or the communicator is as large as MPI_COMM_WORLD and the
///          topology has another number of ranks.
Result<TopologyChoice> choose_topology(const std::optional<std::string>& spec, int comm_size, int world_size);

}  // namespace hips::mpi
