#include <algorithm>
#include <cstring>

#include "lib/node/node_team.hpp"

/// Buffers that other ranks read where they lie.
namespace hips::node {
namespace {

// Of two ranks that both fold all each reads everything, but they meet once less. Below so many slices, where
// all of it stays in the caches of the cores, that is faster; measured on 2 cores with 1 MiB of L2 each, of
// which a slice is an eighth.
constexpr std::uint64_t kLeastPartSlices = 8;

}  // namespace

void NodeTeam::show_places() {
  Places places;
  if (config_.direct) {
    switch (call_.collective) {
      case Collective::kAllreduce: {
        const bool by_parts = config_.size > 2 || num_slices_ >= kLeastPartSlices;
        // What two ranks fold whole and in place one would overwrite while the other reads.
        if (by_parts || call_.in != call_.out) places.in = held_.hold(call_.in, bytes());
        // A part that is folded where it belongs needs no staging.
        if (by_parts) places.out = call_.in == call_.out ? places.in : held_.hold(call_.out, bytes());
        break;
      }
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
  if (shows_in_) {
    // Nothing has to be copied, so that nobody waits for it slice by slice, nor for this rank to get a core.
    copied_ = num_slices_;
    block_->copied.value.store(first_slice_ + num_slices_, std::memory_order_seq_cst);
  }
  std::memcpy(block_->lines[number_ & 1U].operands.data(), &places, sizeof places);
}

bool NodeTeam::knows_operands() {
  if (operands_known_) return true;
  if (stage_ == Stage::kStuck || !all_called()) return false;
  bool any_in = false, all_show = true;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    Peer& peer = peers_[r];
    Places places;
    std::memcpy(&places, peer.block->lines[number_ & 1U].operands.data(), sizeof places);
    any_in = any_in || places.in.shared();
    all_show = all_show && places.in.shared() && places.out.shared();
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
  // Two ranks that stage take two stages at any size: what one folds, the other would only copy.
  if (any_in && call_.collective == Collective::kAllreduce && num_slices_ >= kLeastPartSlices)
    two_stages_ = false;
  if (all_show) nobody_stages();
  operands_known_ = true;
  return true;
}

void NodeTeam::cannot_read(Status status, Rank rank) {
  stage_ = Stage::kStuck;
  status.rank = name(rank);
  status.scope = Scope::kCommunicator;
  status.message += "; HIPS_NODE_DIRECT=off copies memory of hips_mem_alloc as any other";
  if (config_.on_error) {
    config_.on_error(status);
  } else {
    fail(status);
  }
}

bool NodeTeam::was_left() const {
  std::atomic_thread_fence(std::memory_order_acquire);  // after what was read there
  return std::ranges::any_of(
      peers_, [](const Peer& peer) { return peer.block->left.load(std::memory_order_seq_cst) != 0; });
}

}  // namespace hips::node
