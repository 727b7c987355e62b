#pragma once

#include "tools/hips-allreduce-perf/launch.hpp"
#include "tools/hips-allreduce-perf/options.hpp"

namespace hips::perf {

/// Times every algorithm between neighbours on the topology, alternating between them, at every size. Prints
/// the topology as a file with the rate and latency with which the cost model fits these times best
/// (lib/cost/fit.hpp); comments have the other results. Collective.
///
/// Errors   thrown: the times do not determine the constants; the message says what to measure instead.
/// Example  mpirun -n 9 hips-allreduce-perf --topo bcube:3,1 -b 64 -e 64M -f 8 --fit > here.yaml
///          hips compare -t here.yaml
void fit(PerfLaunch& launch, const PerfOptions& options);

}  // namespace hips::perf
