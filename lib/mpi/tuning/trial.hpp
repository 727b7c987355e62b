#pragma once

#include <cstdint>
#include <span>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/comm/communicator.hpp"
#include "lib/mpi/tuning/guard.hpp"

namespace hips::mpi {

/// Compares the arguments of all ranks before a trial of native MPI or of HiPS. Collective.
///
/// Native MPI does not detect that ranks passed different arguments: it hangs or gives garbage. The
/// comparison is a call of HiPS, which also makes all ranks start the trial at about the same time. HiPS
/// detects a rank that is in no trial as in any other call. Where ranks have made different numbers of trials, as after an
/// earlier communicator of theirs has failed, the class begins again.
///
/// Errors   kMismatch: on all ranks; names the mismatching ranks and what each passed. Those of the call.
Status compare_arguments(comm::Communicator& communicator, const comm::CallArgs& args, Guard& guard,
                         CallClass of);

/// Replaces each value by the mean of all ranks. Collective.
Status mean_over_ranks(comm::Communicator& communicator, std::span<std::int64_t> values);

/// Replaces each value by the largest of all ranks. Collective.
Status max_over_ranks(comm::Communicator& communicator, std::span<std::int64_t> values);

}  // namespace hips::mpi
