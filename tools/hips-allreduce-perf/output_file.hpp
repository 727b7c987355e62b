#pragma once

#include <string>

namespace hips::perf {

class Group;

/// Collective: before anything is measured, can rank 0 write this file? Nothing is created: a run that is
/// interrupted leaves nothing.
///
/// Errors   thrown on all ranks, kInvalidArgument: names the file and the reason.
void expect_writable(Group& group, const std::string& path);

/// The last thing of a program that prints its results: have they reached whoever reads them?
///
/// Errors   thrown, kSystem: standard output could not be written, and why.
void expect_printed();

}  // namespace hips::perf
