#include "lib/plan/steps/lane_builder.hpp"

#include "lib/pattern/modulo.hpp"
#include "lib/plan/steps/shapes.hpp"

namespace hips::plan {
namespace {

/// Hops of a ring from one member to another, in the ring's direction.
std::int64_t hops(const pattern::Ring& ring, std::int64_t from, std::int64_t to) {
  return pattern::modulo(ring.direction * (to - from), ring.size);
}

}  // namespace

std::vector<Position> LaneBuilder::positions(std::int32_t lane, Rank rank) const {
  std::vector<Position> all;
  all.reserve(static_cast<std::size_t>(num_positions(lane)));
  for (std::int32_t i = 0; i < num_positions(lane); ++i) all.push_back(position(lane, i, rank));
  return all;
}

Program LaneBuilder::program(Rank rank) const {
  if (shape_.num_ranks == 1) return program_single();
  const auto num_lanes = static_cast<std::int32_t>(shape_.lanes.size());
  ProgramWriter writer(rank);
  std::vector<std::vector<Position>> of_lane;
  of_lane.reserve(shape_.lanes.size());
  for (std::int32_t lane = 0; lane < num_lanes; ++lane) of_lane.push_back(positions(lane, rank));
  std::vector<LaneProgram> lanes;
  lanes.reserve(shape_.lanes.size());
  for (std::int32_t lane = 0; lane < num_lanes; ++lane)
    lanes.emplace_back(lane, shape_.lanes[lane].blocks.first, of_lane[lane], writer);
  // Stage by stage over all lanes: first in, first out is then also earliest stage first.
  for (std::int32_t stage = 0; stage < lanes.front().num_stages(); ++stage) {
    for (LaneProgram& lane : lanes) lane.emit_stage(stage);
  }
  for (const LaneProgram& lane : lanes) writer.own(lane.owned());
  return writer.take();
}

std::vector<BlockRange> LaneBuilder::owned(Rank rank) const {
  if (shape_.num_ranks == 1) return {{0, 1}};
  std::vector<BlockRange> all;
  ProgramWriter writer(rank);
  for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(shape_.lanes.size()); ++lane) {
    const std::vector<Position> of_lane = positions(lane, rank);
    const BlockRange blocks = LaneProgram(lane, shape_.lanes[lane].blocks.first, of_lane, writer).owned();
    if (blocks.count > 0) all.push_back(blocks);
  }
  return all;
}

/// The rank that has R_{index-1}(of) when the vector of `root` has been scattered through the positions
/// before. Requires that `of` leads at all of these.
Rank LaneBuilder::holder(std::int32_t lane, std::int32_t index, Rank root, Rank of) const {
  Rank at = root;
  for (std::int32_t i = 0; i < index; ++i) {
    const Position goal = position(lane, i, of), here = position(lane, i, at);
    const std::int64_t member =
        pattern::leader(here.leaders, pattern::leader_index(goal.leaders, goal.index));
    if (member != here.index) at = here.link(member).peer;
  }
  return at;
}

/// The place of `holder` in the group of `member` at a position; -1 if it is in another group.
std::int64_t LaneBuilder::holder_in_group(std::int32_t lane, std::int32_t index, Rank holder,
                                          Rank member) const {
  const Position here = position(lane, index, member);
  if (holder == member) return here.index;
  const std::int64_t place = position(lane, index, holder).index;
  return place != here.index && here.link(place).peer == holder ? place : -1;
}

bool LaneBuilder::kept_in_bcast(const MessageName& message, Rank root) const {
  const std::int32_t num = num_positions(message.lane);
  const bool scatter = message.stage < num;
  const std::int32_t i = scatter ? message.stage : 2 * num - 1 - message.stage;
  const Position receiver = position(message.lane, i, message.to);
  const pattern::Ring ring = receiver.ring();
  const Rank holder = this->holder(message.lane, i, root, message.to);
  const bool by_ring = receiver.scatter == Pattern::kRing;
  if (scatter && !by_ring) return holder == message.from;
  if (!scatter && holder == message.to) return false;
  if (!by_ring) return true;
  // Of a ring's scatter: the piece goes from the holder to its own member, and those between have it, too.
  const std::int64_t source = holder_in_group(message.lane, i, holder, message.to);
  if (source < 0) return !scatter;
  if (scatter) {
    const std::int64_t piece = pattern::scatter_receives(ring, receiver.index, message.round);
    return hops(ring, source, pattern::prev(ring, receiver.index)) < hops(ring, source, piece);
  }
  const std::int64_t piece = receiver.gather == Pattern::kRing
                                 ? pattern::gather_receives(ring, receiver.index, message.round)
                                 : position(message.lane, i, message.from).index;
  return hops(ring, source, receiver.index) > hops(ring, source, piece);
}

bool LaneBuilder::kept_in_reduce(const MessageName& message, Rank root) const {
  const std::int32_t num = num_positions(message.lane);
  if (message.stage < num) return true;
  const std::int32_t i = 2 * num - 1 - message.stage;
  const Position receiver = position(message.lane, i, message.to);
  const Rank holder = this->holder(message.lane, i, root, message.to);
  if (receiver.gather != Pattern::kRing) return holder == message.to;
  const std::int64_t collector = holder_in_group(message.lane, i, holder, message.to);
  if (collector < 0) return false;
  const pattern::Ring ring = receiver.ring();
  const std::int64_t piece = pattern::gather_receives(ring, receiver.index, message.round);
  return hops(ring, piece, receiver.index) <= hops(ring, piece, collector);
}

}  // namespace hips::plan
