#pragma once

#include <string>

namespace hips::perf {

class Group;

/// Collective: before anything is measured, can rank 0 write this file? Nothing is created: a run that is
/// interrupted leaves nothing.
///
/// Errors   thrown on all ranks, kInvalidArgument: names the file and the reason.
void expect_writable(Group& group, const std::string& path);

}  // namespace hips::perf
