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
/// Of all ranks the user's, with m ranks on each server where there are m times as many as servers; of fewer
/// the part that they occupy of it (topology/occupied.hpp). The user's, too, where it has as many ranks as
/// the communicator and is none for MPI_COMM_WORLD. None where that is no topology, where the ranks are not
/// in the world's order, which the wiring follows, or where the user named none. Depends only on what all
/// ranks have in common.
///
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: a malformed spec; or the communicator is as large as MPI_COMM_WORLD and the
///          topology has another number of ranks.
Result<TopologyChoice> choose_topology(const std::optional<std::string>& spec,
                                       std::span<const Rank> world_ranks, int world_size);

}  // namespace hips::mpi
