#pragma once

#include <memory>

#include "lib/base/result.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/ps/model/shared_model.hpp"

namespace hips::ps {

/// Makes a model on `members`, ranks that are left of those of `failed`, with the same options, and with the values that are left:
/// those of a shard, or where its node is gone, those of its replica and of what other nodes keep for that. Collective over
/// `members`; each passes its own part of the model, which no thread uses, and which has failed then if it had not before.
///
/// An update that was applied is in the values, unless the shard's node is gone and the node that had sent its group to the shard, which
/// may be the same: the norm of what is missing is at most `divergence_max`. One whose call has ended with the failure may be in
/// them.
///
/// Cost     a broadcast or an allreduce of each shard; on each rank memory for the whole model, until it returns.
/// Errors   on all ranks that are left; it may be tried again on those. kPeerLost: another rank has died; or a shard is lost, whose
///          elements it names: its node is gone, and it has no replica, or its replica's node is gone, too. Those of
///          SharedModel::create(). kInvalidArgument: ranks pass models that they did not make together.
Result<std::unique_ptr<SharedModel>> recover_model(comm::Communicator& members, SharedModel& failed);

}  // namespace hips::ps
