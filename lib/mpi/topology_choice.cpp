#include "lib/mpi/topology_choice.hpp"

#include <fmt/format.h>

#include <hips/topology.hpp>

namespace hips::mpi {

Result<TopologyChoice> choose_topology(const std::optional<std::string>& spec, int comm_size,
                                       int world_size) {
  if (!spec) return TopologyChoice{std::nullopt, true};
  const std::string own = fmt::format("switch:{}", comm_size);
  Topology topology;
  try {
    topology = parse_topology(*spec);
  } catch (const Error& error) {
    return fail(error.status());
  }
  const Rank ranks = topology.num_ranks();
  if (ranks == comm_size) return TopologyChoice{*spec, true};
  if (comm_size != world_size) return TopologyChoice{own, false};
  if (topology.ranks_per_server == 1 && world_size % ranks == 0)
    return TopologyChoice{fmt::format("{}/{}", *spec, world_size / ranks), true};
  return fail(Code::kInvalidArgument,
              fmt::format("topology {} has {} ranks, but MPI_COMM_WORLD has {}; start {} ranks, or name a "
                          "topology of {}",
                          *spec, ranks, world_size,
                          topology.ranks_per_server == 1 ? fmt::format("{} or a multiple of", ranks)
                                                         : fmt::format("{}", ranks),
                          world_size));
}

}  // namespace hips::mpi
