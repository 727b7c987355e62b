#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/comm/setup/bootstrap.hpp"

/// What recoveries of tables and models share.
namespace hips::ps {

/// Ranks that recover something together: by rank, its rank in the communicator that has failed. `id`: of this rank's part.
/// `what`: for errors, "table".
///
/// Errors   on all ranks. kInvalidArgument: they pass parts that they did not make together.
Result<std::vector<Rank>> ranks_left(comm::SetUpExchanges& exchanges, const comm::Communicator& failed,
                                     std::uint64_t id, std::string_view what);

/// Whether all ranks have succeeded, also where some of them have died meanwhile. All that are left get success, or an error.
Status agree_of_left(comm::Communicator& members, const Status& mine, std::string_view what);

}  // namespace hips::ps
