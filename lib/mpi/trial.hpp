#pragma once

#include <cstdint>
#include <map>
#include <span>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/comm/communicator.hpp"
#include "lib/mpi/guard.hpp"

namespace hips::mpi {

/// Tells all ranks what this one is about to call, before a trial of the host or of HiPS.
///
/// The host does not find out that ranks passed different arguments: it waits for ever, or gives garbage. So
/// they are compared here, by a call of HiPS, which also brings all ranks to the start of the trial at about
/// the same time. A rank that is in no trial is found by HiPS itself, as in any other call. Collective.
///
/// Errors   kMismatch: on all ranks; names the odd ranks and what each passed. Those of the call.
Status announce(comm::Communicator& communicator, const comm::CallArgs& args);

/// Gives the verdicts that rank 0 knows to the guards of all ranks. Collective.
Status share_verdicts(comm::Communicator& communicator, const std::map<GuardClass, GuardVerdict>& of_rank_0,
                      Guard& guard);

/// Replaces each value by the largest of all ranks. Collective.
Status max_over_ranks(comm::Communicator& communicator, std::span<std::int64_t> values);

}  // namespace hips::mpi
