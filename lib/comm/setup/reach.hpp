#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/cost/select.hpp"

namespace hips::comm {

/// Checks that every two processes have a transport in common: any one for "auto", otherwise the named one.
///
/// Errors   kUnsupported: two ranks have no transport in common, and why; or two ranks are the same process.
Status check_reach(std::string_view choice, const std::vector<ProcessInfo>& processes);

/// Returns the medium between these processes for the cost model, with the highest cost per message of any two.
/// They must pass check_reach(). The same on all ranks.
cost::Medium medium_between(std::string_view choice, const std::vector<ProcessInfo>& processes);

}  // namespace hips::comm
