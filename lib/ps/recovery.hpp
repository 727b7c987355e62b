#pragma once

#include <cstdint>
#include <memory>

#include "lib/base/result.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/ps/table.hpp"

namespace hips::ps {

/// A table with the rows that are left of a failed one.
struct Recovered {
  std::unique_ptr<RowTable> table;
  std::uint64_t num_lost =
      0;  ///< keys whose row was lost, at most: they have the first row. The same on all ranks
};

/// Makes a table on `members`, ranks that are left of those of `failed`, with the same options, the rows that their nodes have, and
/// of the others replicas that their nodes have. Rows stay on the nodes where they are; their clocks begin anew. Collective over
/// `members`; each passes its own part of the table, which no thread uses, and which has failed then if it had not before.
///
/// A push that had ended before the failure is in the row, unless the row is lost or a replica stands in for it; one that ended with it
/// may be. Of pushes to replicas, those that were on their way to the owner may be missing.
///
/// A row is lost where a node is gone that had it, or was sending or awaiting it, and no node that is left has a replica. What a
/// node knew of rows elsewhere is gone with the rank that served it: then each of its keys that is nowhere counts, used or not.
///
/// Cost     that of localizing and setting all rows; about 100 bytes on every rank for each replica and each key that may be lost; a
///          hash of each of up to 2^32 keys where a serving rank is gone, shared by the ranks.
/// Errors   on all ranks that are left; it may be tried again on those. Those of RowTable::create(). kInvalidArgument: ranks pass tables that they did not make together.
Result<Recovered> recover(comm::Communicator& members, RowTable& failed);

}  // namespace hips::ps
