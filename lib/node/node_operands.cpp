#include <algorithm>
#include <cstring>
#include <tuple>

#include "lib/node/node_team.hpp"

/// Buffers that other ranks read in place.
namespace hips::node {
namespace {

// Two ranks that both reduce the whole vector read everything, but synchronise once less. Below this number
// of slices, where everything fits the caches of the cores, that is faster. Measured on 2 cores with 1 MiB of
// L2 each; a slice is an eighth of that.
constexpr std::uint64_t kLeastPartSlices = 8;

}  // namespace

void NodeTeam::publish_locations() {
  BufferLocations locations;
  if (config_.direct) {
    switch (call_.collective) {
      case Collective::kAllreduce: {
        const bool by_parts = config_.size > 2 || num_slices_ >= kLeastPartSlices;
        // In place, two ranks that reduce the whole vector would overwrite operands that the other is
        // reading.
        if (by_parts || call_.in != call_.out) locations.in = held_.hold(call_.in, bytes());
        // A part that is reduced directly into the output needs no staging.
        if (by_parts) locations.out = call_.in == call_.out ? locations.in : held_.hold(call_.out, bytes());
        break;
      }
      case Collective::kReduce:
        locations.in = held_.hold(call_.in, bytes());
        break;
      case Collective::kReduceScatter:
        // In place, the result overwrites operands that others may not have read yet.
        if (!scatters_in_place()) locations.in = held_.hold(call_.in, bytes());
        break;
      case Collective::kAlltoall:
        locations.in = held_.hold(call_.in, bytes());
        break;
      case Collective::kScatter:
        if (is_root()) locations.in = held_.hold(call_.in, bytes());
        break;
      case Collective::kGather:
      case Collective::kAllgather:
        locations.in = held_.hold(call_.in, call_.sections->count(self()) * element_bytes_);
        break;
      case Collective::kBcast:
        if (is_root()) locations.in = held_.hold(call_.out, bytes());
        break;
      case Collective::kBarrier:
        break;
    }
  }
  shows_in_ = locations.in.shared();
  shows_out_ = locations.out.shared();
  operands_known_ = reads_others_ = false;
  if (shows_in_) {
    // Nothing is copied in, so no rank waits for this rank slice by slice, or for this rank to get a core.
    copied_ = num_slices_;
    block_->copied.value.store(first_slice_ + num_slices_, std::memory_order_seq_cst);
  }
  std::memcpy(block_->lines[number_ & 1U].operands.data(), &locations, sizeof locations);
}

bool NodeTeam::knows_operands() {
  if (operands_known_) return true;
  if (stage_ == Stage::kStuck || !all_called()) return false;
  find_staging(&SharedBlock::slices, &Peer::slices);
  bool any_in = false, all_show = true;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    Peer& peer = peers_[r];
    BufferLocations locations;
    std::memcpy(&locations, peer.block->lines[number_ & 1U].operands.data(), sizeof locations);
    any_in = any_in || locations.in.shared();
    all_show = all_show && locations.in.shared() && locations.out.shared();
    peer.in = peer.out = nullptr;
    if (r == self()) continue;
    const bool gathers =
        call_.collective == Collective::kGather || call_.collective == Collective::kAllgather;
    const std::size_t in_bytes = gathers ? call_.sections->count(r) * element_bytes_ : bytes();
    for (const auto& [location, size, at] :
         {std::tuple{&locations.in, in_bytes, &peer.in}, std::tuple{&locations.out, bytes(), &peer.out}}) {
      if (!location->shared()) continue;
      auto mapped = peer.segments.find(*location, size, number_);
      if (!mapped) {
        cannot_read(mapped.error(), static_cast<Rank>(r));
        return false;
      }
      *at = *mapped;
      reads_others_ = true;
    }
  }
  // Two ranks that use staging take two stages at every size: a third stage would only copy what the other
  // has reduced.
  if (any_in && call_.collective == Collective::kAllreduce && num_slices_ >= kLeastPartSlices)
    two_stages_ = false;
  if (all_show) use_long_runs();
  operands_known_ = true;
  return true;
}

void NodeTeam::cannot_read(Status status, Rank rank) {
  status.message += "; HIPS_NODE_DIRECT=off copies memory of hips_mem_alloc as any other";
  stop(std::move(status), rank);
}

bool NodeTeam::peer_has_left() const {
  std::atomic_thread_fence(std::memory_order_acquire);  // after the reads of peers' buffers
  return std::ranges::any_of(
      peers_, [](const Peer& peer) { return peer.block->left.load(std::memory_order_seq_cst) != 0; });
}

}  // namespace hips::node
