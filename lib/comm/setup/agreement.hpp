#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hips/status.hpp>

#include "lib/comm/control/wire.hpp"

namespace hips::comm {

/// The settings that must be equal on all ranks of a communicator, as readable (name, value) pairs in a fixed
/// order: topology, algorithm, tuning, versions.
using Terms = std::vector<std::pair<std::string, std::string>>;

/// Compares the terms of all ranks.
///
/// Errors   kMismatch: names the first term that differs, the mismatching ranks and the value of each: "the
///          ranks disagree on the pattern: rank 3 has "ring", the 8 others have "mesh"".
Status compare_terms(std::span<const Terms> by_rank);

/// Returns the status of the first failed rank, prefixed with "rank r: " unless all ranks have the same one.
Status first_failure(std::span<const Status> by_rank);

/// The failure of an exchange in which what `rank` sent is cut, or has another layout.
Status malformed(Rank rank);

/// "rank 4", "ranks 1, 2 and 5"; long lists are shortened.
std::string ranks_text(std::span<const Rank> ranks);

void put_terms(ByteWriter& writer, const Terms& terms);
Terms get_terms(ByteReader& reader);

}  // namespace hips::comm
