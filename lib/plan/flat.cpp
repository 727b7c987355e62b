#include "lib/plan/flat.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "topology/walk.hpp"

namespace hips::plan {

Link routed_link(const Topology& topology, Rank rank, Rank peer) {
  Link link;
  link.peer = peer;
  bool first = true;
  topology::walk(topology, rank, peer, kNoRail, [&](const Hop& hop) {
    if (first) link.out = hop.out;
    first = false;
  });
  topology::walk(topology, peer, rank, kNoRail, [&](const Hop& hop) { link.in = hop.in; });
  return link;
}

bool all_are_neighbours(const Topology& topology) {
  if (!topology.servers_relay) return true;
  std::int32_t levels_between_servers = 0;
  bool one_hop = true;
  for (const Level& level : topology.levels) {
    if (level.kind == LevelKind::kNode || level.radix == 1) continue;
    ++levels_between_servers;
    one_hop = one_hop && (level.kind != LevelKind::kRing || level.radix <= 3) &&
              (level.kind != LevelKind::kLine || level.radix <= 2);
  }
  return levels_between_servers <= 1 && one_hop;
}

void shape_single(PlanShape& shape) {
  shape.num_ranks = 1;
  shape.num_steps = 0;
  shape.neighbours_only = true;
  shape_one_lane(shape, 1, {});
}

Program program_single() {
  ProgramWriter writer(0);
  Step copy;
  copy.op = StepOp::kCopy;
  copy.phase = Phase::kGather;
  copy.level = -1;
  copy.dst = {Buffer::kOutput, {0, 1}};
  writer.add(copy, {Source{Source::Kind::kLocal, {Buffer::kInput, {0, 1}}}}, {});
  writer.own({0, 1});
  return writer.take();
}

void shape_one_lane(PlanShape& shape, std::int64_t num_blocks, std::vector<StageInfo> stages) {
  shape.blocks.parts = {{{0, num_blocks}, {0, 1}, {1, 1}}};
  shape.blocks.num_blocks = num_blocks;
  shape.lanes = {{{0, num_blocks}, +1, std::move(stages)}};
}

Status refuse_foreign_options(std::string_view algorithm, const PlanRequest& request, TakesOptions takes) {
  std::string_view option, means;
  if (!takes.patterns && !request.patterns.empty()) {
    option = "a pattern per level";
    means = "hips";
  } else if (!takes.leaders && request.num_leaders != 0) {
    option = "a number of leaders";
    means = "flat-ps";
  } else if (!takes.rings && request.num_rings != 0) {
    option = "a number of rings";
    means = "flat-ring";
  }
  if (option.empty()) return Status::success();
  return Status::error(
      Code::kInvalidArgument,
      fmt::format("plan: {} means nothing to {}; leave it out or choose {}", option, algorithm, means));
}

}  // namespace hips::plan
