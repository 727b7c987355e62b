#include "lib/comm/setup/topology_choice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <hips/topology.hpp>

#include "topology/parts/occupied.hpp"

namespace hips::comm {
namespace {

/// The spec for the whole job; empty where the topology has another size.
std::optional<std::string> spec_of_job(const std::string& spec, const Topology& topology, int job_size) {
  const Rank ranks = topology.num_ranks();
  if (ranks == job_size) return spec;
  if (topology.ranks_per_server == 1 && job_size % ranks == 0)
    return fmt::format("{}/{}", spec, job_size / ranks);
  return std::nullopt;
}

}  // namespace

Result<TopologyChoice> choose_topology(const std::optional<std::string>& spec,
                                       std::span<const Rank> job_ranks, int job_size, std::string_view job) {
  if (!spec) return TopologyChoice{std::nullopt, true};
  try {
    const Topology topology = parse_topology(*spec);
    const Rank ranks = topology.num_ranks();
    const auto comm_size = static_cast<int>(job_ranks.size());
    const auto of_job = spec_of_job(*spec, topology, job_size);
    // Rank n is on the topology's n-th server.
    const bool in_order = job_ranks.front() >= 0 && std::ranges::is_sorted(job_ranks);
    if (!in_order) return TopologyChoice{std::nullopt, false};
    if (comm_size != job_size && of_job)
      return TopologyChoice{topology::occupied_part(parse_topology(*of_job), job_ranks), false};
    if (of_job) return TopologyChoice{of_job, true};
    if (comm_size == ranks) return TopologyChoice{*spec, true};
    if (comm_size != job_size) return TopologyChoice{std::nullopt, false};
    return fail(Code::kInvalidArgument,
                fmt::format("topology {} has {} ranks, but {} has {}; start {} ranks, or name a "
                            "topology of {}",
                            *spec, ranks, job, job_size,
                            topology.ranks_per_server == 1 ? fmt::format("{} or a multiple of", ranks)
                                                           : fmt::format("{}", ranks),
                            job_size));
  } catch (const Error& error) {
    return fail(error.status());
  }
}

}  // namespace hips::comm
