#pragma once

#include <memory>

#include "lib/base/result.hpp"
#include "lib/comm/communicator.hpp"

namespace hips::comm {

/// Creates a communicator of the ranks of `parent` that have neither died nor left, in their order. Collective over them; `parent`
/// has failed, as a rule, and stays as it is. Its topology is the part that they occupy of the parent's, as after split().
/// Ranks that die meanwhile are left out, too.
///
/// Cost     about six messages of each rank over the control plane, and a set-up.
/// Errors   those of Communicator::create(), on all ranks. kTimeout: a rank that is left has not called it in the time that a call
///          may take.
/// Source   MPIX_Comm_shrink of ULFM.
Result<std::unique_ptr<Communicator>> shrink(Communicator& parent);

}  // namespace hips::comm
