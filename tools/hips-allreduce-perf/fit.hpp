#pragma once

#include "tools/hips-allreduce-perf/launch.hpp"
#include "tools/hips-allreduce-perf/options.hpp"

namespace hips::perf {

/// Times every algorithm between neighbours on the topology, in turns, at every size, and prints it as a
/// topology file with the rate and latency that the cost model needs to come nearest to these times
/// (lib/cost/fit.hpp); what else is known stands in comments. Collective.
///
/// Errors   thrown: the times tell nothing; says what to measure instead.
/// Example  mpirun -n 9 hips-allreduce-perf --topo bcube:3,1 -b 64 -e 64M -f 8 --fit > here.yaml
///          hips compare -t here.yaml
void fit(Launch& launch, const Options& options);

}  // namespace hips::perf
