#pragma once

#include <memory>

#include "tools/hips-allreduce-perf/group.hpp"
#include "tools/hips-allreduce-perf/other_allreduce.hpp"

namespace hips::perf {

/// hips_iallreduce() followed by hips_wait(). The group must outlive it.
std::unique_ptr<OtherAllreduce> make_nonblocking(PerfGroup& group);
/// hips_start() and hips_wait() of a request that is created once for each case.
std::unique_ptr<OtherAllreduce> make_persistent(PerfGroup& group);
/// hips_allreduce() of vectors of the same size and content in memory of malloc().
std::unique_ptr<OtherAllreduce> make_ordinary(PerfGroup& group);

}  // namespace hips::perf
