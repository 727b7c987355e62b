#include "lib/plan/steps/tree_builder.hpp"

#include "lib/plan/steps/shapes.hpp"

namespace hips::plan {

Program TreeBuilder::program(Rank rank) const {
  if (shape_.num_ranks == 1) return program_single();
  std::vector<TreePlace> places;
  places.reserve(shape_.lanes.size());
  for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(shape_.lanes.size()); ++lane)
    places.push_back(place(lane, rank));
  ProgramWriter writer(rank);
  emit_trees(rank, places, writer);
  return writer.take();
}

std::vector<BlockRange> TreeBuilder::owned(Rank rank) const {
  if (shape_.num_ranks == 1) return {{0, 1}};
  std::vector<BlockRange> all;
  for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(shape_.lanes.size()); ++lane) {
    if (parent(lane, rank) < 0) all.push_back({shape_.lanes[lane].blocks.first + rank % num_local(), 1});
  }
  return all;
}

/// Is the server of `root` the one of `top`, or below it in the tree?
bool TreeBuilder::is_below(std::int32_t lane, Rank root, Rank top) const {
  const auto local = static_cast<Rank>(num_local());
  // The tree over the ranks that have top's number on their servers.
  Rank at = root - root % local + top % local;
  while (at >= 0 && at != top) at = parent(lane, at);
  return at == top;
}

bool TreeBuilder::kept_in_bcast(const MessageName& message, Rank root) const {
  switch (tree_stage(message.stage, num_local())) {
    case TreeStage::kLocalScatter:
      return message.from == root;
    case TreeStage::kUp:
      return is_below(message.lane, root, message.from);
    case TreeStage::kDown:
      return !is_below(message.lane, root, message.to);
    case TreeStage::kLocalGather:
      return message.to != root;
  }
  return true;
}

bool TreeBuilder::kept_in_reduce(const MessageName& message, Rank root) const {
  switch (tree_stage(message.stage, num_local())) {
    case TreeStage::kLocalScatter:
    case TreeStage::kUp:
      return true;
    case TreeStage::kDown:
      return is_below(message.lane, root, message.to);
    case TreeStage::kLocalGather:
      return message.to == root;
  }
  return true;
}

}  // namespace hips::plan
