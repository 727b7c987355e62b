#pragma once

#include <optional>
#include <span>
#include <string>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/base/result.hpp"

namespace hips::mpi {

/// The wiring that a communicator gets.
struct TopologyChoice {
  std::optional<std::string> spec;  ///< "bcube:3,1"; none: HiPS chooses
  bool is_users =
      true;  ///< false: the user's wiring has another size, and what names its levels is not for it
};

/// Which topology a communicator gets whose members have these ranks in MPI_COMM_WORLD (negative: none),
/// where the user named `spec` (HIPS_TOPO).
///
/// The user's, where the ranks are as many; the user's with m ranks on each server, where MPI_COMM_WORLD has
/// m times as many ranks as servers; of fewer ranks the part that they occupy of it (topology/occupied.hpp).
/// None where that is no topology, or the user named none. Depends only on what all ranks have in common.
///
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: a malformed spec; or the communicator is as large as MPI_COMM_WORLD and the
/// topology has
///          another number of ranks.
Result<TopologyChoice> choose_topology(const std::optional<std::string>& spec,
                                       std::span<const Rank> world_ranks, int world_size);

}  // namespace hips::mpi
