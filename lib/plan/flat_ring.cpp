// "flat-ring": all ranks on a ring, or on several that use different NICs, each carrying its share.
// Neighbours on a ring are neighbours in the fabric: rank order on racks and switches, Hamiltonian cycles of
// one-hop steps where servers relay. Ranks of one server follow each other.

#include <fmt/format.h>

#include "lib/plan/flat.hpp"
#include "lib/plan/server_rings.hpp"

namespace hips::plan {
namespace {

class FlatRingBuilder final : public PlanBuilder {
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

  [[nodiscard]] const PlanShape& shape() const override { return shape_; }

  [[nodiscard]] Program program(Rank rank) const override {
    if (shape_.num_ranks == 1) return program_single();
    std::vector<std::vector<Position>> positions;
    for (const auto& ring : rings_.rings) positions.push_back({position(ring, rank)});
    ProgramWriter writer(rank);
    std::vector<LaneProgram> lanes;
    for (std::size_t p = 0; p < positions.size(); ++p) {
      lanes.emplace_back(static_cast<std::int32_t>(p), shape_.lanes[p].blocks.first, positions[p], writer);
    }
    for (std::int32_t stage = 0; stage < 2; ++stage) {
      for (LaneProgram& lane : lanes) lane.emit_stage(stage);
    }
    for (const LaneProgram& lane : lanes) writer.own(lane.owned());
    return writer.take();
  }

 private:
  [[nodiscard]] Position position(const ServerRings::Directed& directed, Rank rank) const {
    const ServerRing& ring = *directed.ring;
    const std::int64_t server = rank / local_;
    Position position;
    position.index = ring.index_of(server) * local_ + rank % local_;
    position.scatter = position.gather = Pattern::kRing;
    position.leaders = {.size = shape_.num_ranks, .num_leaders = shape_.num_ranks, .first = 0};
    position.direction = directed.direction;
    position.link = [this, &ring, server, direction = directed.direction](std::int64_t index) {
      Link link;
      const std::int64_t peer_server = ring.server_at(index / local_);
      link.peer = static_cast<Rank>(peer_server * local_ + index % local_);
      if (peer_server == server) return link;
      // A cable is full duplex: the other way round, data leaves where it came in.
      link.out = direction > 0 ? ring.out_rail(server) : ring.in_rail(server);
      link.in = direction > 0 ? ring.in_rail(server) : ring.out_rail(server);
      return link;
    };
    return position;
  }

  std::int64_t local_;
  ServerRings rings_;
  PlanShape shape_;
};

}  // namespace

MadeBuilder make_flat_ring(const Topology& topology, const PlanRequest& request) {
  if (Status status = refuse_foreign_options("flat-ring", request, {.rings = true}); !status.ok()) {
    return fail(std::move(status));
  }
  const std::int32_t most = max_server_rings(topology);
  if (request.num_rings < 0 || request.num_rings > most) {
    return fail(Code::kInvalidArgument, fmt::format("flat-ring: {} rings, but servers have NICs for 1 to {}",
                                                    request.num_rings, most));
  }
  const std::int32_t first = request.num_rings == 0 ? most : request.num_rings;
  Result<ServerRings> rings = make_server_rings(topology, first);
  // "All that the topology allows": one fewer until there is a set. One ring always is.
  for (std::int32_t fewer = first - 1; !rings && request.num_rings == 0 && fewer >= 1; --fewer) {
    rings = make_server_rings(topology, fewer);
  }
  if (!rings) return fail(std::move(rings).error());
  return std::make_unique<FlatRingBuilder>(topology, std::move(*rings), most);
}

}  // namespace hips::plan
