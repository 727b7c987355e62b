#include "tools/hips-allreduce-perf/launch.hpp"

namespace hips::perf {

Result<std::unique_ptr<PerfLaunch>> launch_by_mpi(int*, char***) {
  return fail(
      Code::kUnsupported,
      "started by an MPI launcher, but this build has no MPI; build with -Dmpi=enabled, or start each rank "
      "with HIPS_RANK, HIPS_SIZE and HIPS_ROOT=host:port");
}

}  // namespace hips::perf
