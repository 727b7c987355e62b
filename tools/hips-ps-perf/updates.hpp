#pragma once

#include <hips/communicator.hpp>

#include "tools/hips-ps-perf/measurements.hpp"
#include "tools/hips-ps-perf/options.hpp"

namespace hips::ps_perf {

/// Times the steps of workers that train a model, each at its own pace: push an update and fetch. Once with updates and values
/// that are scheduled, and once with all that is sent at once. Collective; checks that every update was applied once or
/// handed back.
///
/// Errors   throws Error of the calls; kInternal: an update was lost or applied twice.
void measure_updates(Communicator& comm, const PsPerfOptions& options, Measurements& lines);

}  // namespace hips::ps_perf
