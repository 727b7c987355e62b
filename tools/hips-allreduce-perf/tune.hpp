#pragma once

#include "tools/hips-allreduce-perf/launch.hpp"
#include "tools/hips-allreduce-perf/options.hpp"

namespace hips::perf {

/// Times every algorithm that runs on the topology, in turns, at every size, prints the medians, and writes
/// the best ones to the selection table `options.tune_file`; what that has for other topologies stays.
/// Collective.
///
/// A plan gives way to another only for more than 3 %, so that noise makes no table of a hundred lines.
///
/// Errors   thrown: what is wrong with the table, or kSystem where it cannot be written.
void tune(Launch& launch, const Options& options);

}  // namespace hips::perf
