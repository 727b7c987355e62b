#pragma once

#include <cstdint>
#include <functional>
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

/// Calls attempt(), and finds whether it succeeded on all ranks, also where some of them have died meanwhile: all that are left get
/// success, or an error.
Status attempt_together(comm::Communicator& members, std::string_view what,
                        const std::function<Status()>& attempt);

}  // namespace hips::ps
