#pragma once

#include "tools/hips-allreduce-perf/launch.hpp"
#include "tools/hips-allreduce-perf/options.hpp"

namespace hips::perf {

/// Times every algorithm that runs on the topology, alternating between them, at every size. Prints the
/// medians and writes the best plans to the selection table `options.tune_file`; its lines for other
/// topologies are kept. Collective.
///
/// The plan changes from one size to the next only if that saves more than 3 %, so that noise does not
/// fragment the table.
///
/// Errors   thrown: those of a malformed table; kSystem: it cannot be written.
void tune(PerfLaunch& launch, const PerfOptions& options);

}  // namespace hips::perf
