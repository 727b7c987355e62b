#include <algorithm>
#include <cstring>

#include "lib/node/node_team.hpp"
#include "lib/reduce/reduce.hpp"

/// Calls that are too large for one exchange: they go through staging in slices.
namespace hips::node {
namespace {

// Parts that are reduced directly into the output use no staging, so a rank can be far ahead of one that has
// lost its core. The limit is about the size of a core's cache: beyond it, others would read the parts from
// memory.
constexpr std::uint64_t kMostAhead = 16;

// Limit for parts of the result that others read in place. Above it no cache holds the vector, and parts are
// stored past the caches: between cores that share no cache, memory delivers a line sooner than the cache of
// the core that wrote it. Measured on 2 such cores: 32 MiB 0.79 of the time, 64 MiB 0.84. On cores that share
// a cache: 0.93 and 0.91, but 1.13 at 16 MiB.
constexpr std::size_t kStreamPartsBytes = 32U << 20U;

// Number of slices of such vectors that are processed together if no rank uses staging: nothing has to stay
// in a cache, and a core prefetches within a part but not into the next one. Measured on 2 cores that share
// no cache: 32 MiB 0.80 of the time, 64 MiB 0.79. On cores that share a cache: 0.95 and 0.96. 4 ranks on 2
// cores: 0.85 and 0.87.
constexpr std::uint64_t kStreamRun = 16;

constexpr std::uint64_t behind(std::uint64_t slices, std::uint64_t by) {
  return slices > by ? slices - by : 0;
}

}  // namespace

void NodeTeam::start_slices() {
  copied_ = reduced_ = taken_ = 0;
  run_ = 1;
  const bool by_parts = call_.collective == Collective::kAllreduce || call_.collective == Collective::kReduce;
  two_stages_ = !by_parts || config_.size == 2;
  std::uint64_t run = slice_elements(), elements = call_.count;
  if (has_sections(call_.collective)) {
    elements = call_.sections->longest();
    // A slice holds a piece for each rank, in cache lines of its own.
    if (has_pieces_for_all(call_.collective)) {
      run = std::max<std::uint64_t>(1, layout_.piece_bytes(config_.size) / element_bytes_);
    }
  }
  piece_elements_ = run;
  num_slices_ = (elements + run - 1) / run;
  // What stays in the caches depends on what the program does next; beyond this size nothing stays.
  constexpr std::size_t kStreamBytes = 4U << 20U;
  stream_ = bytes() >= kStreamBytes;
}

bool NodeTeam::advance_slices() {
  bool moved = false;
  while (stage_ == Stage::kSlices) {
    // Until all ranks have called, this rank reads nothing of others and does not know the number of stages.
    const bool known = knows_operands();
    // The last stage runs first: its data is still in the cache, and it frees slices for others.
    const std::uint64_t taking = first_slice_ + run_end(taken_);
    if (known && taken_ < (two_stages_ ? copied_ : reduced_) &&
        (two_stages_ ? all_at(&Peer::copied, &SharedBlock::copied, taking)
                     : all_at(&Peer::reduced, &SharedBlock::reduced, taking))) {
      const std::int64_t begin_ns = now_if_traced();
      take(taken_);
      trace(TraceEvent::Kind::kReduce, begin_ns, static_cast<std::int64_t>(taken_),
            elements_of(taken_) * element_bytes_);
      taken_ = run_end(taken_);
      block_->taken.value.store(taking, std::memory_order_seq_cst);
      wake_others();
      moved = true;
      continue;
    }
    if (taken_ == num_slices_) return finish_slices() || moved;
    const std::uint64_t reducing = first_slice_ + run_end(reduced_);
    if (known && !two_stages_ && reduced_ < copied_ &&
        all_at(&Peer::copied, &SharedBlock::copied, reducing) &&
        all_at(&Peer::taken, &SharedBlock::taken,
               behind(reducing, shows_out_ ? kMostAhead * run_ : layout_.num_slices))) {
      const std::int64_t begin_ns = now_if_traced();
      fold_part(reduced_);
      trace(TraceEvent::Kind::kReduce, begin_ns, static_cast<std::int64_t>(reduced_),
            elements_of(reduced_) * element_bytes_);
      reduced_ = run_end(reduced_);
      block_->reduced.value.store(reducing, std::memory_order_seq_cst);
      wake_others();
      moved = true;
      continue;
    }
    const std::uint64_t copying = first_slice_ + copied_ + 1;
    if (copied_ < num_slices_ &&
        all_at(&Peer::taken, &SharedBlock::taken, behind(copying, layout_.num_slices))) {
      copy_in(copied_);
      ++copied_;
      block_->copied.value.store(copying, std::memory_order_seq_cst);
      wake_others();
      moved = true;
      continue;
    }
    return moved;
  }
  return moved;
}

void NodeTeam::use_long_runs() {
  if (bytes() >= kStreamPartsBytes) run_ = kStreamRun;
}

bool NodeTeam::finish_slices() {
  const std::uint64_t end_slice = first_slice_ + num_slices_;
  if (held_.any() && !all_at(&Peer::taken, &SharedBlock::taken, end_slice)) return false;
  if (reads_others_ && peer_has_left()) {
    // The data that was read may be invalid. The peer that withdrew its buffers has failed, and so has the
    // communicator.
    stage_ = Stage::kStuck;
    return true;
  }
  first_slice_ = end_slice;
  end();
  return true;
}

bool NodeTeam::all_at(std::uint64_t Peer::*seen, SliceCount SharedBlock::*count, std::uint64_t wanted) {
  for (Peer& peer : peers_) {
    if (peer.*seen >= wanted) continue;
    const auto rank = static_cast<Rank>(&peer - peers_.data());
    if (!has_block(rank)) return false;
    peer.*seen = (peer.block->*count).value.load(std::memory_order_seq_cst);
    note_missing(peer.*seen < wanted, rank);
    if (peer.*seen < wanted) return false;
  }
  return true;
}

std::size_t NodeTeam::elements_of(std::uint64_t slice) const {
  if (has_sections(call_.collective)) return piece_of(slice, self()).elements;
  return std::min<std::size_t>(run_ * slice_elements(), call_.count - slice * slice_elements());
}

Part NodeTeam::piece_of(std::uint64_t slice, std::size_t rank) const {
  const std::uint64_t count = call_.sections->count(rank);
  const std::uint64_t first = std::min(count, slice * piece_elements_);
  return {first, std::min<std::uint64_t>(piece_elements_, count - first)};
}

std::byte* NodeTeam::staging_of(const Peer& peer, std::uint64_t slice) const {
  return peer.slices + layout_.slice_offset(first_slice_ + slice);
}

const std::byte* NodeTeam::operands_of(const Peer& peer, std::uint64_t slice) const {
  return peer.in != nullptr ? peer.in + slice_begin(slice) : staging_of(peer, slice);
}

void NodeTeam::copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
  (stream_ ? reduce::copy_streaming : reduce::copy)(to, from, bytes);
}

// ---- Copy in -------------------------------------------------------------------------------------------

void NodeTeam::copy_in(std::uint64_t slice) {
  std::byte* const to = staging_of(peers_[self()], slice);
  switch (call_.collective) {
    case Collective::kReduceScatter:
      for (std::size_t r = 0; r < peers_.size(); ++r) {
        // This rank reads its own piece in place, unless results overwrite it.
        if (r == self() && !scatters_in_place()) continue;
        const Part piece = piece_of(slice, r);
        if (piece.elements == 0) continue;
        std::memcpy(to + r * piece_elements_ * element_bytes_,
                    call_.in + (call_.sections->first(r) + piece.first) * element_bytes_,
                    piece.elements * element_bytes_);
      }
      return;
    case Collective::kScatter:
    case Collective::kAlltoall:
      if (call_.collective == Collective::kScatter && !is_root()) return;
      for (std::size_t r = 0; r < peers_.size(); ++r) {
        const Part piece = piece_of(slice, r);
        // This rank reads its own piece in place.
        if (r == self() || piece.elements == 0) continue;
        std::memcpy(to + r * piece_elements_ * element_bytes_,
                    call_.in + (call_.sections->first(r) + piece.first) * element_bytes_,
                    piece.elements * element_bytes_);
      }
      return;
    case Collective::kGather:
      if (is_root()) return;  // it reads its own section in place
      [[fallthrough]];
    case Collective::kAllgather: {
      const Part piece = piece_of(slice, self());
      if (piece.elements > 0)
        std::memcpy(to, call_.in + piece.first * element_bytes_, piece.elements * element_bytes_);
      return;
    }
    case Collective::kBcast:
      if (is_root()) std::memcpy(to, call_.out + slice_begin(slice), elements_of(slice) * element_bytes_);
      return;
    default:
      break;
  }
  const std::byte* from = call_.in + slice_begin(slice);
  const std::size_t bytes = elements_of(slice) * element_bytes_;
  if (two_stages_) {
    // In a reduce of two ranks only the root reads, and it reads its own operands in place.
    if (call_.collective != Collective::kReduce || !is_root()) std::memcpy(to, from, bytes);
    return;
  }
  // This rank reads its own part in place, so it does not copy it.
  const Part own = part_of(elements_of(slice), element_bytes_, config_.rank, config_.size);
  const std::size_t begin = own.first * element_bytes_, end = (own.first + own.elements) * element_bytes_;
  std::memcpy(to, from, begin);
  std::memcpy(to + end, from + end, bytes - end);
}

// ---- Fold a part --------------------------------------------------------------------------------------

void NodeTeam::fold_part(std::uint64_t slice) {
  const Part own = part_of(elements_of(slice), element_bytes_, config_.rank, config_.size);
  const std::size_t begin = own.first * element_bytes_;
  for (std::size_t r = 0; r < peers_.size(); ++r) sources_[r] = operands_of(peers_[r], slice) + begin;
  sources_[self()] = call_.in + slice_begin(slice) + begin;
  std::byte* const to =
      (shows_out_ ? call_.out + slice_begin(slice) : staging_of(peers_[self()], slice)) + begin;
  const auto fold = shows_out_ && bytes() >= kStreamPartsBytes ? reduce::fold_streaming : reduce::fold;
  fold(call_.type, call_.op, to, sources_, own.elements);
}

// ---- Take ----------------------------------------------------------------------------------------------

void NodeTeam::take(std::uint64_t slice) {
  switch (call_.collective) {
    case Collective::kReduce:
      if (!is_root()) return;
      [[fallthrough]];
    case Collective::kAllreduce:
      return two_stages_ ? fold_whole(slice) : copy_parts(slice);
    case Collective::kReduceScatter:
      return fold_own_piece(slice);
    case Collective::kGather:
      if (!is_root()) return;
      [[fallthrough]];
    case Collective::kAllgather:
      return copy_pieces(slice);
    case Collective::kScatter:
      return copy_own_piece(slice, static_cast<std::size_t>(call_.root), 0);
    case Collective::kAlltoall:
      // Each rank begins with another peer, so that not all ranks read the same peer at once.
      for (std::size_t i = 0; i < peers_.size(); ++i) {
        const std::size_t r = (self() + i) % peers_.size();
        copy_own_piece(slice, r, call_.sections->first(r));
      }
      return;
    case Collective::kBcast:
      return copy_root(slice);
    case Collective::kBarrier:
      return;
  }
}

void NodeTeam::fold_whole(std::uint64_t slice) {
  const std::size_t begin = slice_begin(slice);
  for (std::size_t r = 0; r < peers_.size(); ++r) sources_[r] = operands_of(peers_[r], slice);
  sources_[self()] = call_.in + begin;
  const auto fold = stream_ ? reduce::fold_streaming : reduce::fold;
  fold(call_.type, call_.op, call_.out + begin, sources_, elements_of(slice));
}

void NodeTeam::fold_own_piece(std::uint64_t slice) {
  const Part piece = piece_of(slice, self());
  if (piece.elements == 0) return;
  const std::size_t own = (call_.sections->first(self()) + piece.first) * element_bytes_;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    const Peer& peer = peers_[r];
    sources_[r] = peer.in != nullptr ? peer.in + own
                                     : staging_of(peer, slice) + self() * piece_elements_ * element_bytes_;
  }
  if (!scatters_in_place()) sources_[self()] = call_.in + own;
  const auto fold = stream_ ? reduce::fold_streaming : reduce::fold;
  fold(call_.type, call_.op, call_.out + piece.first * element_bytes_, sources_, piece.elements);
}

void NodeTeam::copy_parts(std::uint64_t slice) {
  std::byte* const to = call_.out + slice_begin(slice);
  // Each rank begins with another peer, so that not all ranks read the same peer at once.
  for (int i = shows_out_ ? 1 : 0; i < config_.size; ++i) {
    const int r = (config_.rank + i) % config_.size;
    const Peer& peer = peers_[static_cast<std::size_t>(r)];
    const Part part = part_of(elements_of(slice), element_bytes_, r, config_.size);
    const std::byte* const from =
        peer.out != nullptr ? peer.out + slice_begin(slice) : staging_of(peer, slice);
    const std::size_t begin = part.first * element_bytes_;
    copy(to + begin, from + begin, part.elements * element_bytes_);
  }
}

void NodeTeam::copy_pieces(std::uint64_t slice) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const std::size_t r = (self() + i) % peers_.size();
    const Part piece = piece_of(slice, r);
    if (piece.elements == 0) continue;
    std::byte* const to = call_.out + (call_.sections->displacement(r) + piece.first) * element_bytes_;
    const std::byte* const brought = r == self() ? call_.in : peers_[r].in;
    const std::byte* const from =
        brought != nullptr ? brought + piece.first * element_bytes_ : staging_of(peers_[r], slice);
    if (to != from) copy(to, from, piece.elements * element_bytes_);
  }
}

void NodeTeam::copy_own_piece(std::uint64_t slice, std::size_t from, std::uint64_t to) {
  const Part piece = piece_of(slice, self());
  if (piece.elements == 0) return;
  const Peer& peer = peers_[from];
  const std::byte* const vector = from == self() ? call_.in : peer.in;
  const std::byte* const source =
      vector != nullptr ? vector + (call_.sections->first(self()) + piece.first) * element_bytes_
                        : staging_of(peer, slice) + self() * piece_elements_ * element_bytes_;
  std::byte* const target = call_.out + (to + piece.first) * element_bytes_;
  if (target != source) copy(target, source, piece.elements * element_bytes_);
}

void NodeTeam::copy_root(std::uint64_t slice) {
  if (is_root()) return;
  copy(call_.out + slice_begin(slice), operands_of(peers_[static_cast<std::size_t>(call_.root)], slice),
       elements_of(slice) * element_bytes_);
}

}  // namespace hips::node
