#include "lib/mpi/communicators/topology_choice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <hips/topology.hpp>

#include "topology/parts/occupied.hpp"

namespace hips::mpi {
namespace {

/// The spec for the whole job; empty where the topology has another size.
std::optional<std::string> spec_of_world(const std::string& spec, const Topology& topology, int world_size) {
  const Rank ranks = topology.num_ranks();
  if (ranks == world_size) return spec;
  if (topology.ranks_per_server == 1 && world_size % ranks == 0)
    return fmt::format("{}/{}", spec, world_size / ranks);
  return std::nullopt;
}

}  // namespace

Result<TopologyChoice> choose_topology(const std::optional<std::string>& spec,
                                       std::span<const Rank> world_ranks, int world_size) {
  if (!spec) return TopologyChoice{std::nullopt, true};
  try {
    const Topology topology = parse_topology(*spec);
    const Rank ranks = topology.num_ranks();
    const auto comm_size = static_cast<int>(world_ranks.size());
    const auto of_world = spec_of_world(*spec, topology, world_size);
    // Rank n is on the topology's n-th server.
    const bool in_order = world_ranks.front() >= 0 && std::ranges::is_sorted(world_ranks);
    if (!in_order) return TopologyChoice{std::nullopt, false};
    if (comm_size != world_size && of_world)
      return TopologyChoice{topology::occupied_part(parse_topology(*of_world), world_ranks), false};
    if (of_world) return TopologyChoice{of_world, true};
    if (comm_size == ranks) return TopologyChoice{*spec, true};
    if (comm_size != world_size) return TopologyChoice{std::nullopt, false};
    return fail(Code::kInvalidArgument,
                fmt::format("topology {} has {} ranks, but MPI_COMM_WORLD has {}; start {} ranks, or name a "
                            "topology of {}",
                            *spec, ranks, world_size,
                            topology.ranks_per_server == 1 ? fmt::format("{} or a multiple of", ranks)
                                                           : fmt::format("{}", ranks),
                            world_size));
  } catch (const Error& error) {
    return fail(error.status());
  }
}

}  // namespace hips::mpi
