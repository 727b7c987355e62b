#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "transports/verbs/trouble.hpp"
#include "transports/verbs/verbs_transport.hpp"

namespace hips::verbs {

using transport::Verb;
using transport::WorkRequest;

std::size_t VerbsTransport::post(std::span<const WorkRequest> requests) {
  std::size_t taken = 0;
  for (const WorkRequest& request : requests) {
    Endpoint* mine = endpoint(request.peer);
    if (mine == nullptr || mine->state != Endpoint::State::kConnected) [[unlikely]] {
      if (mine != nullptr && mine->state == Endpoint::State::kConnecting) break;
      if (mine == nullptr || mine->state == Endpoint::State::kOpen) refuse(request.peer);
      ++taken;  // a broken endpoint takes all and does nothing
      continue;
    }
    if (!append(*mine, request)) break;
    ++taken;
  }
  ring_doorbells();
  return taken;
}

QueuePair* VerbsTransport::choose_pair(Endpoint& mine, std::size_t parts, bool notifies, std::size_t& index) {
  const auto fits = [&](QueuePair& pair) {
    return pair.room() >= parts && (!notifies || pair.token_allowed());
  };
  if (mine.pairs.size() == 1) {
    index = 0;
    return fits(*mine.pairs[0]) ? mine.pairs[0].get() : nullptr;
  }
  QueuePair& bound = *mine.pairs[mine.bound_pair];
  if (bound.completed() < mine.bound_until) {
    index = mine.bound_pair;
    return fits(bound) ? &bound : nullptr;
  }
  for (std::size_t tries = 0; tries < mine.pairs.size(); ++tries) {
    index = mine.next_pair;
    mine.next_pair = index + 1 == mine.pairs.size() ? 0 : index + 1;
    if (fits(*mine.pairs[index])) return mine.pairs[index].get();
  }
  return nullptr;
}

bool VerbsTransport::append(Endpoint& mine, const WorkRequest& request) {
  const bool get = request.verb == Verb::kGet;
  const bool notifies = request.verb == Verb::kPutNotify;
  // What to move, in local pieces.
  std::array<ibv_sge, 2> local;
  std::size_t num_local = 0, bytes = 0;
  std::array<const ibv_mr*, 2> keys{};
  bool unknown = false;
  const auto add = [&](const std::byte* address, std::size_t size, transport::MemoryId memory) {
    if (size == 0) return;
    keys[num_local] = owned_.memory.find(address, size, memory);
    unknown |= keys[num_local] == nullptr;
    local[num_local] = {.addr = reinterpret_cast<std::uintptr_t>(address),
                        .length = 0,
                        .lkey = keys[num_local] == nullptr ? 0 : keys[num_local]->lkey};
    ++num_local;
    bytes += size;
  };
  std::array<std::size_t, 2> sizes{};
  if (get) {
    add(request.into.data(), request.into.size(), request.pieces[0].memory);
    sizes[0] = request.into.size();
  } else {
    for (std::int32_t i = 0; i < request.num_pieces; ++i) {
      const auto& piece = request.pieces[static_cast<std::size_t>(i)];
      if (piece.bytes > 0) sizes[num_local] = piece.bytes;
      add(piece.address, piece.bytes, piece.memory);
    }
  }
  if (bytes > 0 && (request.remote == nullptr || request.remote_offset > request.remote->bytes ||
                    bytes > request.remote->bytes - request.remote_offset)) [[unlikely]] {
    break_endpoint(mine, Status::error(Code::kInternal,
                                       fmt::format("verbs: {} bytes at offset {} of a region of {} bytes",
                                                   bytes, request.remote_offset,
                                                   request.remote == nullptr ? 0 : request.remote->bytes),
                                       Scope::kPeer));
    return true;
  }
  const std::uint32_t max_inline = mine.pairs[0]->max_inline();
  const bool inlined = !get && bytes > 0 && bytes <= max_inline && num_local <= budget_.pieces;
  if (unknown && !inlined) [[unlikely]] {
    break_endpoint(
        mine, Status::error(Code::kInternal,
                            fmt::format("verbs: {} was to move {} bytes of memory that is not registered "
                                        "with it",
                                        port_.name, bytes),
                            Scope::kPeer));
    return true;
  }

  // Cut into work requests: all pieces in one where they fit, else one for each stretch of a piece.
  const std::size_t most = static_cast<std::size_t>(facts_.limits.max_message_bytes);
  struct Cut {
    std::size_t piece, offset, bytes;
  };
  std::array<Cut, kMaxPartsOfOne> cuts;
  std::size_t num_cuts = 0;
  const bool whole = bytes <= most && num_local <= budget_.pieces;
  if (!whole) {
    for (std::size_t piece = 0; piece < num_local; ++piece) {
      for (std::size_t offset = 0; offset < sizes[piece]; offset += most) {
        if (num_cuts == cuts.size()) [[unlikely]] {
          break_endpoint(mine, Status::error(Code::kInternal,
                                             fmt::format("verbs: {} bytes in one request; {} takes {}", bytes,
                                                         port_.name, limits_.max_message_bytes),
                                             Scope::kPeer));
          return true;
        }
        cuts[num_cuts++] = {piece, offset, std::min(most, sizes[piece] - offset)};
      }
    }
  }
  const std::size_t data_parts = bytes == 0 ? 0 : whole ? 1 : num_cuts;
  // The immediate rides on the last write; without immediates a SEND follows it.
  const bool sends_note = notifies && !immediates_;
  const std::size_t parts = std::max<std::size_t>(1, data_parts + (sends_note ? 1 : 0));
  if (num_parts_ + parts > kMaxParts) ring_doorbells();
  std::size_t index = 0;
  QueuePair* pair = choose_pair(mine, parts, notifies, index);
  if (pair == nullptr) return false;
  const bool touches_memory = bytes > 0 && !inlined;
  // With several queue pairs each must say for itself when its part is done.
  const bool several = mine.pairs.size() > 1;
  const bool told = request.signalled || (several && (touches_memory || request.verb == Verb::kPut));
  if (told && mine.pending.full()) return false;
  const bool signal = told || pair->wants_signal(static_cast<std::uint32_t>(parts));
  if (!pair->has_chain()) rung_.push_back(pair);

  std::uint64_t last = 0;
  std::uint64_t remote_address = bytes == 0 ? 0 : request.remote->key[0] + request.remote_offset;
  const auto remote_key = bytes == 0 ? 0 : static_cast<std::uint32_t>(request.remote->key[1]);
  for (std::size_t part = 0; part < parts; ++part) {
    ibv_send_wr& wr = parts_[num_parts_];
    ibv_sge* sge = &pieces_[2 * num_parts_];
    ++num_parts_;
    wr = {};
    wr.sg_list = sge;
    const bool final = part + 1 == parts;
    if (sends_note && final) {
      const Note note{Note::Kind::kToken, request.token};
      wr.opcode = IBV_WR_SEND;
      sge[0] = pair->note_memory(note, pair->posted());
      wr.num_sge = 1;
      if (max_inline >= sizeof(Note)) wr.send_flags = IBV_SEND_INLINE;
    } else {
      wr.opcode = get                                ? IBV_WR_RDMA_READ
                  : notifies && immediates_ && final ? IBV_WR_RDMA_WRITE_WITH_IMM
                                                     : IBV_WR_RDMA_WRITE;
      wr.imm_data = htonl(request.token);
      wr.wr.rdma.remote_addr = remote_address;
      wr.wr.rdma.rkey = remote_key;
      std::size_t moved = 0;
      if (data_parts > 0 && whole) {
        for (std::size_t i = 0; i < num_local; ++i) {
          sge[i] = local[i];
          sge[i].length = static_cast<std::uint32_t>(sizes[i]);
        }
        wr.num_sge = static_cast<int>(num_local);
        moved = bytes;
      } else if (data_parts > 0) {
        const Cut& cut = cuts[part];
        sge[0] = local[cut.piece];
        sge[0].addr += cut.offset;
        sge[0].length = static_cast<std::uint32_t>(cut.bytes);
        wr.num_sge = 1;
        moved = cut.bytes;
      }
      remote_address += moved;
      if (inlined) wr.send_flags = IBV_SEND_INLINE;
    }
    last = pair->append(wr, final && signal);
  }
  if (notifies) pair->count_token();
  if (several && request.verb == Verb::kPut) {
    mine.bound_pair = index;
    mine.bound_until = last + 1;
  }
  if (told) {
    mine.pending.push({.context = request.context,
                       .number = last,
                       .token = request.token,
                       .pair = static_cast<std::uint8_t>(index),
                       .signalled = request.signalled});
  }
  return true;
}

void VerbsTransport::ring_doorbells() {
  num_parts_ = 0;
  rung_.swap(ringing_);
  for (QueuePair* pair : ringing_) {
    if (!pair->has_chain()) continue;  // its endpoint broke meanwhile
    if (const int error = pair->flush(); error != 0) [[unlikely]] {
      Status status = call_error(port_.name, "posting to " + pair->endpoint->name.to_string(), error);
      status.scope = Scope::kPeer;
      break_endpoint(*pair->endpoint, std::move(status));
    }
  }
  ringing_.clear();
}

}  // namespace hips::verbs
