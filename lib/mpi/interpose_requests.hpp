#pragma once

#include "lib/mpi/iallreduce.hpp"

namespace hips::mpi {

/// The host's function for persistent calls, under whichever name it has it.
const AllreduceInit& allreduce_init_of_host();

}  // namespace hips::mpi
