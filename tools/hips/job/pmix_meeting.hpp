#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hips/status.hpp>

namespace hips::cli {

/// Executes hips-meet, which exchanges rank 0's address through PMIx and runs this program again with
/// `arguments` and HIPS_ROOT.
///
/// Errors   (thrown) kUnsupported: this build has no PMIx. kSystem: hips-meet cannot be executed.
[[noreturn]] void meet_by_pmix(std::string_view command, const std::vector<std::string>& arguments);

/// Ends this process `timeout_s` and two minutes from now: a command that examines broken devices and drivers
/// must not hang with them.
void end_when_stuck(std::string_view command, int timeout_s, Rank rank);

}  // namespace hips::cli
