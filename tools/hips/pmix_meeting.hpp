#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hips/status.hpp>

namespace hips::cli {

/// Runs this program again, with `arguments`, where hips-meet has told it who the others are.
///
/// Errors   (thrown) kUnsupported: this build has no PMIx. kSystem: hips-meet cannot be executed.
[[noreturn]] void meet_by_pmix(std::string_view command, const std::vector<std::string>& arguments);

/// Ends a process that drivers or devices keep `patience_s` and two minutes more: commands that look at what
/// may be broken must not hang with it.
void end_when_stuck(std::string_view command, int patience_s, Rank rank);

}  // namespace hips::cli
