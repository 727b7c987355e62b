#pragma once

#include <memory>

#include "tools/hips-allreduce-perf/contender.hpp"
#include "tools/hips-allreduce-perf/group.hpp"

namespace hips::perf {

/// hips_iallreduce() and hips_wait() at once. The group outlives it.
std::unique_ptr<Contender> make_nonblocking(Group& group);
/// hips_start() and hips_wait() of a request that is made once for each case.
std::unique_ptr<Contender> make_persistent(Group& group);
/// hips_allreduce() of other vectors as long, in memory of malloc().
std::unique_ptr<Contender> make_ordinary(Group& group);

}  // namespace hips::perf
