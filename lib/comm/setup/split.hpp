#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lib/base/result.hpp"
#include "lib/comm/communicator.hpp"

namespace hips::comm {

inline constexpr int kNoPart = -1;  ///< the colour of ranks that join no part

/// Creates a communicator of the ranks of `parent` that pass the same colour, ordered by key and then by rank in
/// the parent. Null for kNoPart. Collective over the parent and ordered with its other calls.
///
/// Its topology is the part of the parent's topology that its ranks occupy (topology/parts/occupied.hpp). If that
/// part is not a topology, or the parent named none, the new communicator names none. It inherits the algorithm,
/// and the pattern unless that has one entry per level of the parent.
///
/// Cost     one small allgather of the parent where its ranks share memory; else about six small collectives, or three for a spare
///          communicator.
/// Errors   kInvalidArgument, on all ranks: a rank passed a negative colour other than kNoPart. Those of
///          Communicator::create(), on all ranks of one colour. Those of the parent's calls.
/// Source   MPI_Comm_split.
Result<std::unique_ptr<Communicator>> split(Communicator& parent, int color, int key);

/// The options for a communicator of some ranks of `parent`, in this order: those of the parent, on the part of its topology that
/// they occupy. `suffix` follows the parent's name, if they are not all of its ranks in order.
CommunicatorOptions options_of(const Communicator& parent, std::span<const Rank> members,
                               std::string_view suffix);

/// Creates a communicator of the same ranks with the same plans. Calls on one do not wait for calls on the other.
/// Collective; local where its ranks share memory.
Result<std::unique_ptr<Communicator>> duplicate(Communicator& parent);

}  // namespace hips::comm
