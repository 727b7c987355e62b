#pragma once

#include <vector>

#include "lib/comm/setup/bootstrap.hpp"
#include "tools/doctor/job.hpp"

namespace hips::doctor {

/// All-gathers the reports; the result is in the order of ranks.
///
/// Threads  collective: all ranks of the bootstrap call it.
/// Errors   those of the bootstrap and of decode_report().
Result<std::vector<RankReport>> exchange_reports(comm::Bootstrap& bootstrap, const RankReport& mine);

/// All-gathers the trials. Threads and errors as above.
Result<std::vector<Trial>> exchange_trials(comm::Bootstrap& bootstrap, const std::vector<Trial>& mine);

}  // namespace hips::doctor
