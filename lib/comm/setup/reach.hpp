#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/cost/select.hpp"

namespace hips::comm {

/// Is there a transport between any two of them, among all for "auto", else the named one?
///
/// Errors   kUnsupported: names two that cannot reach each other, and why; or that are one process.
Status check_reach(std::string_view choice, const std::vector<ProcessInfo>& processes);

/// What lies between these processes, which can reach each other, to the model of costs: the dearest message
/// of any two of them. The same on all ranks.
cost::Medium medium_between(std::string_view choice, const std::vector<ProcessInfo>& processes);

}  // namespace hips::comm
