#pragma once

#include <memory>

#include "lib/base/result.hpp"
#include "lib/comm/communicator.hpp"

namespace hips::comm {

inline constexpr int kNoPart = -1;  ///< as a colour

/// A communicator of the ranks of `parent` that pass the same colour, ordered by key and, where keys are
/// equal, by rank in the parent. Null for kNoPart. Collective over the parent, whose calls it takes its turn
/// among.
///
/// It is planned on what its ranks occupy of the parent's topology (topology/occupied.hpp); where that is no
/// topology, or none was named, as a communicator that names none. Algorithm and patterns come along, unless
/// they are one for each level of the parent.
///
/// Cost     about a dozen small collectives of the parent.
/// Errors   kInvalidArgument: a rank passed another negative colour; on all ranks. Those of
/// Communicator::create(),
///          on all ranks of one colour alike; those of the parent's calls.
/// Source   MPI_Comm_split.
Result<std::unique_ptr<Communicator>> split(Communicator& parent, int color, int key);

/// Another communicator of the same ranks, planned as `parent` is: calls on one wait for none on the other.
/// Collective.
Result<std::unique_ptr<Communicator>> duplicate(Communicator& parent);

}  // namespace hips::comm
