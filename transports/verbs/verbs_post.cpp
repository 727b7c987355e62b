#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include <fmt/format.h>

#include "transports/verbs/trouble.hpp"
#include "transports/verbs/verbs_transport.hpp"

namespace hips::verbs {

using transport::Verb;
using transport::WorkRequest;

namespace {

/// The local memory of a request, without empty pieces.
struct LocalData {
  std::array<ibv_sge, 2> pieces;  ///< address and key; the length is set for each work request
  std::array<std::size_t, 2> sizes{};
  std::size_t num = 0, bytes = 0;
  bool unregistered = false;  ///< some piece has no key
};

/// A part of one piece that fits into a work request.
struct Stretch {
  std::size_t piece, offset, bytes;
};

LocalData gather(const MemoryTable& memory, const WorkRequest& request) {
  LocalData data;
  const auto add = [&](const std::byte* address, std::size_t size, transport::MemoryId id) {
    if (size == 0) return;
    const ibv_mr* registration = memory.find(address, size, id);
    data.unregistered |= registration == nullptr;
    data.pieces[data.num] = {.addr = reinterpret_cast<std::uintptr_t>(address),
                             .length = 0,
                             .lkey = registration == nullptr ? 0 : registration->lkey};
    data.sizes[data.num++] = size;
    data.bytes += size;
  };
  if (request.verb == Verb::kGet) {
    add(request.into.data(), request.into.size(), request.pieces[0].memory);
  } else {
    for (std::int32_t i = 0; i < request.num_pieces; ++i) {
      const auto& piece = request.pieces[static_cast<std::size_t>(i)];
      add(piece.address, piece.bytes, piece.memory);
    }
  }
  return data;
}

/// Splits all pieces into stretches of at most `most` bytes; false if there are more than `stretches` holds.
bool split(const LocalData& data, std::size_t most, std::span<Stretch> stretches, std::size_t& count) {
  for (std::size_t piece = 0; piece < data.num; ++piece) {
    for (std::size_t offset = 0; offset < data.sizes[piece]; offset += most) {
      if (count == stretches.size()) [[unlikely]]
        return false;
      stretches[count++] = {piece, offset, std::min(most, data.sizes[piece] - offset)};
    }
  }
  return true;
}

/// Makes `wr` move all pieces; returns the bytes.
std::size_t set_all(ibv_send_wr& wr, const LocalData& data) {
  for (std::size_t i = 0; i < data.num; ++i) {
    wr.sg_list[i] = data.pieces[i];
    wr.sg_list[i].length = static_cast<std::uint32_t>(data.sizes[i]);
  }
  wr.num_sge = static_cast<int>(data.num);
  return data.bytes;
}

/// Makes `wr` move one stretch; returns the bytes.
std::size_t set_stretch(ibv_send_wr& wr, const LocalData& data, const Stretch& stretch) {
  wr.sg_list[0] = data.pieces[stretch.piece];
  wr.sg_list[0].addr += stretch.offset;
  wr.sg_list[0].length = static_cast<std::uint32_t>(stretch.bytes);
  wr.num_sge = 1;
  return stretch.bytes;
}

/// Makes `wr` a SEND of the notification, for devices without immediates.
void set_notification(ibv_send_wr& wr, QueuePair& pair, std::uint32_t token, std::uint32_t max_inline) {
  wr.opcode = IBV_WR_SEND;
  wr.sg_list[0] = pair.control_memory({ControlMessage::Kind::kToken, token}, pair.posted());
  wr.num_sge = 1;
  if (max_inline >= sizeof(ControlMessage)) wr.send_flags = IBV_SEND_INLINE;
}

bool exceeds_region(const WorkRequest& request, std::size_t bytes) {
  return bytes > 0 && (request.remote == nullptr || request.remote_offset > request.remote->bytes ||
                       bytes > request.remote->bytes - request.remote_offset);
}

[[gnu::cold]] Status region_error(const WorkRequest& request, std::size_t bytes) {
  return Status::error(
      Code::kInternal,
      fmt::format("verbs: {} bytes at offset {} of a region of {} bytes", bytes, request.remote_offset,
                  request.remote == nullptr ? 0 : request.remote->bytes),
      Scope::kPeer);
}

[[gnu::cold]] Status unregistered_error(const std::string& port, std::size_t bytes) {
  return Status::error(
      Code::kInternal,
      fmt::format("verbs: {}: a request of {} bytes uses memory that is not registered with it", port, bytes),
      Scope::kPeer);
}

[[gnu::cold]] Status size_error(const std::string& port, std::size_t bytes, std::size_t most) {
  return Status::error(
      Code::kInternal,
      fmt::format("verbs: {}: a request of {} bytes is too large; at most {} bytes", port, bytes, most),
      Scope::kPeer);
}

}  // namespace

std::size_t VerbsTransport::post(std::span<const WorkRequest> requests) {
  std::size_t taken = 0;
  for (const WorkRequest& request : requests) {
    VerbsEndpoint* endpoint = find_endpoint(request.peer);
    if (endpoint == nullptr || endpoint->state != VerbsEndpoint::State::kConnected) [[unlikely]] {
      if (endpoint != nullptr && endpoint->state == VerbsEndpoint::State::kConnecting) break;
      if (endpoint == nullptr || endpoint->state == VerbsEndpoint::State::kOpen)
        report_unconnected(request.peer);
      ++taken;  // a broken endpoint accepts requests and discards them
      continue;
    }
    if (!append(*endpoint, request)) break;
    ++taken;
  }
  ring_doorbells();
  return taken;
}

QueuePair* VerbsTransport::choose_pair(VerbsEndpoint& endpoint, std::size_t parts, bool notifies,
                                       std::size_t& index) {
  const auto fits = [&](QueuePair& pair) {
    return pair.room() >= parts && (!notifies || pair.token_allowed());
  };
  if (endpoint.pairs.size() == 1) {
    index = 0;
    return fits(*endpoint.pairs[0]) ? endpoint.pairs[0].get() : nullptr;
  }
  QueuePair& bound = *endpoint.pairs[endpoint.bound_pair];
  if (bound.completed() < endpoint.bound_until) {
    index = endpoint.bound_pair;
    return fits(bound) ? &bound : nullptr;
  }
  for (std::size_t tries = 0; tries < endpoint.pairs.size(); ++tries) {
    index = endpoint.next_pair;
    endpoint.next_pair = index + 1 == endpoint.pairs.size() ? 0 : index + 1;
    if (fits(*endpoint.pairs[index])) return endpoint.pairs[index].get();
  }
  return nullptr;
}

/// False if the queues have no room. A request that cannot be carried out breaks the endpoint.
bool VerbsTransport::append(VerbsEndpoint& endpoint, const WorkRequest& request) {
  const bool get = request.verb == Verb::kGet;
  const bool notifies = request.verb == Verb::kPutNotify;
  const LocalData data = gather(owned_.memory, request);
  if (exceeds_region(request, data.bytes)) [[unlikely]] {
    break_endpoint(endpoint, region_error(request, data.bytes));
    return true;
  }
  const std::uint32_t max_inline = endpoint.pairs[0]->max_inline();
  const bool inlined = !get && data.bytes > 0 && data.bytes <= max_inline && data.num <= budget_.pieces;
  if (data.unregistered && !inlined) [[unlikely]] {
    break_endpoint(endpoint, unregistered_error(port_.name, data.bytes));
    return true;
  }
  // One work request with all pieces if they fit, else one for each stretch of a piece.
  const auto most = static_cast<std::size_t>(facts_.limits.max_message_bytes);
  std::array<Stretch, kMaxPartsOfOne> stretches;
  std::size_t num_stretches = 0;
  const bool whole = data.bytes <= most && data.num <= budget_.pieces;
  if (!whole && !split(data, most, stretches, num_stretches)) [[unlikely]] {
    break_endpoint(endpoint, size_error(port_.name, data.bytes, limits_.max_message_bytes));
    return true;
  }
  const std::size_t data_parts = data.bytes == 0 ? 0 : whole ? 1 : num_stretches;
  // The last write carries the immediate. Without immediates a SEND follows it.
  const bool sends_control = notifies && !immediates_;
  const std::size_t parts = std::max<std::size_t>(1, data_parts + (sends_control ? 1 : 0));
  if (num_parts_ + parts > kMaxParts) ring_doorbells();
  std::size_t index = 0;
  QueuePair* pair = choose_pair(endpoint, parts, notifies, index);
  if (pair == nullptr) return false;
  // With several queue pairs, each must raise a completion for its own part.
  const bool several = endpoint.pairs.size() > 1;
  const bool touches_memory = data.bytes > 0 && !inlined;
  const bool tracked = request.signalled || (several && (touches_memory || request.verb == Verb::kPut));
  if (tracked && endpoint.pending.full()) return false;
  const bool signal = tracked || pair->wants_signal(static_cast<std::uint32_t>(parts));
  if (!pair->has_chain()) chained_.push_back(pair);

  std::uint64_t last = 0;
  std::uint64_t remote_address = data.bytes == 0 ? 0 : request.remote->key[0] + request.remote_offset;
  const auto remote_key = data.bytes == 0 ? 0 : static_cast<std::uint32_t>(request.remote->key[1]);
  for (std::size_t part = 0; part < parts; ++part) {
    ibv_send_wr& wr = parts_[num_parts_];
    wr = {};
    wr.sg_list = &pieces_[2 * num_parts_];
    ++num_parts_;
    const bool final = part + 1 == parts;
    if (sends_control && final) {
      set_notification(wr, *pair, request.token, max_inline);
    } else {
      wr.opcode = get                                ? IBV_WR_RDMA_READ
                  : notifies && immediates_ && final ? IBV_WR_RDMA_WRITE_WITH_IMM
                                                     : IBV_WR_RDMA_WRITE;
      wr.imm_data = htonl(request.token);
      wr.wr.rdma.remote_addr = remote_address;
      wr.wr.rdma.rkey = remote_key;
      if (data_parts > 0)
        remote_address += whole ? set_all(wr, data) : set_stretch(wr, data, stretches[part]);
      if (inlined) wr.send_flags = IBV_SEND_INLINE;
    }
    last = pair->append(wr, final && signal);
  }
  if (notifies) pair->count_token();
  if (several && request.verb == Verb::kPut) {
    endpoint.bound_pair = index;
    endpoint.bound_until = last + 1;
  }
  if (tracked) {
    endpoint.pending.push({.context = request.context,
                           .number = last,
                           .token = request.token,
                           .pair = static_cast<std::uint8_t>(index),
                           .signalled = request.signalled});
  }
  return true;
}

void VerbsTransport::ring_doorbells() {
  num_parts_ = 0;
  chained_.swap(flushing_);
  for (QueuePair* pair : flushing_) {
    if (!pair->has_chain()) continue;  // its endpoint broke in the meantime
    if (const int error = pair->flush(); error != 0) [[unlikely]] {
      Status status = call_error(port_.name, "posting to " + pair->endpoint->name.to_string(), error);
      status.scope = Scope::kPeer;
      break_endpoint(*pair->endpoint, std::move(status));
    }
  }
  flushing_.clear();
}

}  // namespace hips::verbs
