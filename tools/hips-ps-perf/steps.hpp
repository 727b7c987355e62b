#pragma once

#include <hips/communicator.hpp>

#include "tools/hips-ps-perf/measurements.hpp"
#include "tools/hips-ps-perf/options.hpp"

namespace hips::ps_perf {

/// Times steps of training with keys of which some are in most steps: each rank draws its keys by Zipf's law, pulls and pushes
/// their rows, and ends a clock. Four times, which differ in what the ranks say of their keys beforehand: nothing, localize(),
/// intents, and intents in a table with replicas. Collective; checks that no push is lost.
///
/// Errors   throws Error of the calls; kInternal: a push was lost.
void measure_steps(Communicator& comm, const PsPerfOptions& options, Measurements& lines);

}  // namespace hips::ps_perf
