#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/base/result.hpp"

namespace hips::comm {

/// The topology of a communicator.
struct TopologyChoice {
  std::optional<std::string> spec;  ///< "bcube:3,1"; none: HiPS chooses
  /// False: the user's topology has another size, so that variables which name its levels do not apply.
  bool is_users = true;
};

/// Chooses the topology of a communicator whose members have these ranks in the job (negative: none), where the user named
/// `spec` (HIPS_TOPO).
///
/// A communicator of all ranks gets the user's topology, with m ranks on each server where there are m times as many ranks as
/// servers; one of fewer ranks gets the part that they occupy (topology/occupied.hpp). One with as many ranks as the user's
/// topology gets that, where it does not fit the job. The result has no spec where the part is not a topology, where the ranks
/// are not in the job's order, which the topology follows, or where the user named none. Depends only on what is equal on all
/// ranks. `job` names it in the error: "MPI_COMM_WORLD", "the job".
///
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: a malformed spec; or the communicator is as large as the job and the topology has another number
///          of ranks.
Result<TopologyChoice> choose_topology(const std::optional<std::string>& spec,
                                       std::span<const Rank> job_ranks, int job_size, std::string_view job);

}  // namespace hips::comm
