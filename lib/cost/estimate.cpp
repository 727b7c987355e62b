#include "lib/cost/estimate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "topology/families/family.hpp"
#include "topology/link_rates.hpp"

namespace hips::cost {

namespace {

/// Finds the busiest link of one stage or of the whole operation, and its time.
class Busiest {
 public:
  Busiest(const Topology& topology, const Loads& loads)
      : topology_(topology), loads_(loads), rates_(topology, loads.tiers) {}

  [[nodiscard]] double seconds(const Loads::Stage& stage) const {
    double largest = 0;
    visit(stage, [&](const Where&, std::int64_t bytes, double bandwidth) {
      if (bytes > 0) largest = std::max(largest, static_cast<double>(bytes) / bandwidth);
    });
    return largest;
  }

  [[nodiscard]] LinkLoad link(const Loads::Stage& stage) const {
    LinkLoad busiest;
    Where where;
    visit(stage, [&](const Where& here, std::int64_t bytes, double bandwidth) {
      const double seconds = bytes > 0 ? static_cast<double>(bytes) / bandwidth : 0;
      if (seconds <= busiest.seconds) return;
      busiest.bytes = bytes;
      busiest.seconds = seconds;
      where = here;
    });
    if (busiest.bytes > 0) busiest.name = name(where);
    return busiest;
  }

 private:
  struct Where {
    const topology::Tier* tier = nullptr;  ///< null: a NIC
    std::size_t index = 0;                 ///< in the stage's list
    bool out = true;
  };

  template <typename Visit>
  void visit(const Loads::Stage& stage, Visit&& each) const {
    const auto both = [&](const topology::Tier* tier, std::size_t index, const Traffic& traffic,
                          double bandwidth) {
      each(Where{tier, index, true}, traffic.out_bytes, bandwidth);
      each(Where{tier, index, false}, traffic.in_bytes, bandwidth);
    };
    const auto rails = static_cast<std::size_t>(loads_.num_rails);
    for (std::size_t i = 0; i < stage.nics.size(); ++i) {
      const auto server = loads_.first_server + static_cast<std::int64_t>(i / rails);
      both(nullptr, i, stage.nics[i], rates_.nic(server, static_cast<Rail>(i % rails)));
    }
    for (std::size_t t = 0; t < stage.tiers.size(); ++t) {
      for (std::size_t i = 0; i < stage.tiers[t].size(); ++i) {
        both(&loads_.tiers[t], i, stage.tiers[t][i], rates_.tier(t, i));
      }
    }
  }

  [[nodiscard]] std::string name(const Where& where) const {
    const char* direction = where.out ? "out" : "in";
    if (where.tier != nullptr && topology_.wiring.value != nullptr) {
      const Graph& graph = topology_.wiring.value->graph;
      const GraphLink& link = graph.links[where.index];
      const auto end = [&](std::int64_t node) { return graph.nodes[static_cast<std::size_t>(node)].name; };
      return fmt::format("cable from {} to {}", end(where.out ? link.a : link.b),
                         end(where.out ? link.b : link.a));
    }
    if (where.tier != nullptr) return fmt::format("{} {} {}", where.tier->one, where.index, direction);
    const auto rails = static_cast<std::size_t>(loads_.num_rails);
    const auto server = loads_.first_server + static_cast<std::int64_t>(where.index / rails);
    return fmt::format("server {} NIC {} {}", topology::server_address(topology_, server),
                       where.index % rails, direction);
  }

  const Topology& topology_;
  const Loads& loads_;
  topology::LinkRates rates_;
};

double latency_seconds_per_step(const Topology& topology) {
  double latency_ns = 0;
  for (const Level& level : topology.levels) latency_ns = std::max(latency_ns, level.latency_ns);
  return latency_ns * 1e-9;
}

}  // namespace

Cost estimate_loads(const Topology& topology, const PlanShape& shape, Loads loads, Volume volume,
                    BoundUse bound_use) {
  Cost cost;
  cost.volume = volume;
  cost.num_steps = shape.num_steps;
  cost.latency_seconds = shape.num_steps * latency_seconds_per_step(topology);
  const Busiest busiest(topology, loads);
  cost.busiest = busiest.link(loads.total);
  cost.bandwidth_seconds = cost.busiest.seconds;
  for (const Loads::Stage& stage : loads.stages) cost.barrier_seconds += busiest.seconds(stage);
  if (bound_use == BoundUse::kCompared) {
    cost.bound = bound(topology);
    cost.bound_seconds = cost.bound.seconds(static_cast<double>(volume.bytes()));
  }
  if (cost.bound_seconds > 0) {
    cost.ratio = cost.bandwidth_seconds / cost.bound_seconds;
    cost.barrier_ratio = cost.barrier_seconds / cost.bound_seconds;
  }
  cost.loads = std::move(loads);
  return cost;
}

Cost estimate(const Topology& topology, const PlanShape& shape, std::span<const Program> programs,
              Volume volume, BoundUse bound_use) {
  const auto given = static_cast<std::int64_t>(programs.size());
  if (given != shape.num_ranks && given != topology.ranks_per_server) {
    throw Error(Status::error(
        Code::kInvalidArgument,
        fmt::format("cost: invalid number of programs {} (valid: all {}, or the {} of one server)", given,
                    shape.num_ranks, topology.ranks_per_server)));
  }
  LoadCounter counter = given == shape.num_ranks ? LoadCounter(topology, shape, volume)
                                                 : LoadCounter(topology, shape, volume,
                                                               programs[0].rank / topology.ranks_per_server);
  for (const Program& program : programs) counter.add(program);
  return estimate_loads(topology, shape, counter.take(), volume, bound_use);
}

Cost estimate_all(const Topology& topology, const PlanBuilder& builder, Volume volume, BoundUse bound_use) {
  LoadCounter counter(topology, builder.shape(), volume);
  for (Rank rank = 0; rank < builder.shape().num_ranks; ++rank) counter.add(builder.program(rank));
  return estimate_loads(topology, builder.shape(), counter.take(), volume, bound_use);
}

Cost estimate_server_of(const Topology& topology, const PlanBuilder& builder, Rank rank, Volume volume) {
  const Rank server = rank / topology.ranks_per_server;
  LoadCounter counter(topology, builder.shape(), volume, server);
  for (std::int32_t i = 0; i < topology.ranks_per_server; ++i) {
    counter.add(builder.program(server * topology.ranks_per_server + i));
  }
  return estimate_loads(topology, builder.shape(), counter.take(), volume);
}

}  // namespace hips::cost
