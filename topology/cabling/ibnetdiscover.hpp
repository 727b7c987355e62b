#pragma once

#include <string_view>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// Is the text what ibnetdiscover writes, with -p or without, ibdiagnet's variant of it, or a net file of ibsim?
bool is_ibnetdiscover(std::string_view text);

/// Reads it. Adapters become ports of their host, as their descriptions name both ("n7 mlx5_0"): "mlx5_0", or "mlx5_0:1" if
/// several ports of the adapter have cables. An adapter without the name of a host becomes a server of its own, named by its
/// GUID. Switches keep their description as name, or have their GUID if others have the same. Aggregation nodes, routers and
/// cables from a switch to itself are dropped, with one note each. Lines before the first node may be anything.
///
/// Units    data rates: 4xEDR is 12.5e9 bytes/s (ib_rate.hpp).
/// Cost     linear in the text, on average.
/// Errors   kInvalidArgument: `name` of the file, line, the value seen and what would be right.
/// Source   ibnetdiscover(8); the README of ibsim.
Result<Cabling> read_ibnetdiscover(std::string_view name, std::string_view text);

}  // namespace hips::topology
