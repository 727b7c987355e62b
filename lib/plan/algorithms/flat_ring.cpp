// "flat-ring": all ranks on a ring, or on several rings that use different NICs and carry equal shares.
// Neighbours on a ring are neighbours in the fabric: rank order on racks and switches, Hamiltonian cycles of
// one-hop steps where servers relay. Ranks of one server are consecutive.

#include <utility>

#include <fmt/format.h>

#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/options.hpp"
#include "lib/plan/fabric/server_rings.hpp"
#include "lib/plan/steps/lane_builder.hpp"
#include "lib/plan/steps/shapes.hpp"

namespace hips::plan {
namespace {

class FlatRingBuilder final : public LaneBuilder {
 public:
  FlatRingBuilder(const Topology& topology, ServerRings rings, std::int32_t max_rings)
      : local_(topology.ranks_per_server), rings_(std::move(rings)) {
    const Rank ranks = topology.num_ranks();
    const auto num_rings = static_cast<std::int64_t>(rings_.rings.size());
    shape_.algorithm = "flat-ring";
    shape_.description = fmt::format("flat ring of {} ranks over {} of {} NICs, {}", ranks, num_rings,
                                     max_rings, rings_.order);
    if (ranks == 1) {
      shape_.description = "flat ring of 1 rank";
      shape_single(shape_);
      return;
    }
    shape_.num_ranks = ranks;
    shape_.num_steps = 2 * (ranks - 1);
    shape_.neighbours_only = true;
    shape_.blocks.num_blocks = num_rings * ranks;
    shape_.blocks.parts = {{{0, shape_.blocks.num_blocks}, {0, 1}, {1, 1}}};
    for (std::int64_t p = 0; p < num_rings; ++p) {
      shape_.lanes.push_back(
          {{p * ranks, ranks},
           rings_.rings[p].direction,
           {{Phase::kScatter, -1, Pattern::kRing, ranks}, {Phase::kGather, -1, Pattern::kRing, ranks}}});
    }
  }

 private:
  [[nodiscard]] Position position(std::int32_t lane, std::int32_t /*index*/, Rank rank) const override {
    const ServerRings::Directed& directed = rings_.rings[lane];
    const ServerRing& ring = *directed.ring;
    const std::int64_t server = rank / local_;
    Position position;
    position.index = ring.index_of(server) * local_ + rank % local_;
    position.scatter = position.gather = Pattern::kRing;
    position.leaders = {.size = shape_.num_ranks, .num_leaders = shape_.num_ranks, .first = 0};
    position.direction = directed.direction;
    position.link = [this, &ring, server, direction = directed.direction](std::int64_t index) {
      PeerLink link;
      const std::int64_t peer_server = ring.server_at(index / local_);
      link.peer = static_cast<Rank>(peer_server * local_ + index % local_);
      if (peer_server == server) return link;
      // A cable is full duplex: in the other direction, data leaves by the NIC by which it arrives in this
      // one.
      link.out = direction > 0 ? ring.out_rail(server) : ring.in_rail(server);
      link.in = direction > 0 ? ring.in_rail(server) : ring.out_rail(server);
      return link;
    };
    return position;
  }

  std::int64_t local_;
  ServerRings rings_;
};

}  // namespace

MadeBuilder make_flat_ring(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("flat-ring", request, {.rings = true}); !status.ok()) {
    return fail(std::move(status));
  }
  const std::int32_t most = max_server_rings(topology);
  if (request.num_rings < 0 || request.num_rings > most) {
    return fail(
        Code::kInvalidArgument,
        fmt::format(
            "flat-ring: invalid number of rings {} (valid: 1 to {}, the NICs of a server that rings can use)",
            request.num_rings, most));
  }
  const std::int32_t first = request.num_rings == 0 ? most : request.num_rings;
  Result<ServerRings> rings = make_server_rings(topology, first);
  // By default as many rings as there are: one fewer until a set is found. One ring always exists.
  for (std::int32_t fewer = first - 1; !rings && request.num_rings == 0 && fewer >= 1; --fewer) {
    rings = make_server_rings(topology, fewer);
  }
  if (!rings) return fail(std::move(rings).error());
  return std::make_unique<FlatRingBuilder>(topology, std::move(*rings), most);
}

}  // namespace hips::plan
