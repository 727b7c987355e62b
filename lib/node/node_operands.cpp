#include <algorithm>
#include <cstring>

#include "lib/node/node_team.hpp"

/// Buffers that other ranks read where they lie.
namespace hips::node {

void NodeTeam::show_places() {
  Places places;
  if (config_.direct) {
    switch (call_.collective) {
      case Collective::kAllreduce:
        places.in = held_.hold(call_.in, bytes());
        // Folded in place, a part needs no staging and is where it belongs.
        places.out = call_.in == call_.out ? places.in : held_.hold(call_.out, bytes());
        break;
      case Collective::kReduce:
        places.in = held_.hold(call_.in, bytes());
        break;
      case Collective::kReduceScatter:
        // In place the result overwrites what others have not read yet.
        if (!scatters_in_place()) places.in = held_.hold(call_.in, bytes());
        break;
      case Collective::kAllgather:
        places.in = held_.hold(call_.in, call_.sections->count(self()) * element_bytes_);
        break;
      case Collective::kBcast:
        if (is_root()) places.in = held_.hold(call_.out, bytes());
        break;
      case Collective::kBarrier:
        break;
    }
  }
  shows_in_ = places.in.shared();
  shows_out_ = places.out.shared();
  operands_known_ = reads_others_ = false;
  std::memcpy(block_->lines[number_ & 1U].operands.data(), &places, sizeof places);
}

bool NodeTeam::knows_operands() {
  if (operands_known_) return true;
  if (stage_ == Stage::kStuck || !all_called()) return false;
  bool any_in = false;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    Peer& peer = peers_[r];
    Places places;
    std::memcpy(&places, peer.block->lines[number_ & 1U].operands.data(), sizeof places);
    any_in = any_in || places.in.shared();
    peer.in = peer.out = nullptr;
    if (r == self()) continue;
    for (const auto& [place, at] : {std::pair{&places.in, &peer.in}, std::pair{&places.out, &peer.out}}) {
      if (!place->shared()) continue;
      auto mapped = peer.segments.find(*place, number_);
      if (!mapped) {
        cannot_read(mapped.error(), static_cast<Rank>(r));
        return false;
      }
      *at = *mapped;
      reads_others_ = true;
    }
  }
  // Of two ranks each folds all, which saves a step, unless operands are read where they lie: one that is
  // folded in place must not be read by another any more, and what is folded by one is read once.
  if (any_in && call_.collective == Collective::kAllreduce) two_stages_ = false;
  operands_known_ = true;
  return true;
}

void NodeTeam::cannot_read(Status status, Rank rank) {
  stage_ = Stage::kStuck;
  status.rank = rank;
  status.scope = Scope::kCommunicator;
  status.message += "; HIPS_NODE_DIRECT=off copies memory of hips_mem_alloc as any other";
  if (config_.on_error) {
    config_.on_error(status);
  } else {
    fail(status);
  }
}

bool NodeTeam::was_left() const {
  return std::ranges::any_of(
      peers_, [](const Peer& peer) { return peer.block->left.load(std::memory_order_seq_cst) != 0; });
}

}  // namespace hips::node
