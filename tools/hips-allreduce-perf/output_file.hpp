#pragma once

#include <string>

namespace hips::perf {

class PerfGroup;

/// Checks before any measurement that rank 0 can write this file. Creates nothing, so that an interrupted run
/// leaves no file. Collective.
///
/// Errors   thrown on all ranks, kInvalidArgument: names the file and the reason.
void expect_writable(PerfGroup& group, const std::string& path);

}  // namespace hips::perf
