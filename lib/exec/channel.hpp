#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "lib/exec/compiled_program.hpp"
#include "lib/exec/grant.hpp"
#include "transports/transport.hpp"

namespace hips::exec {

class OperationImpl;
struct Connection;
struct EnginePort;

/// Receives a peer's messages of one lane: `credits` slots of our staging, used round robin.
///
/// Segments are numbered consecutively over all operations; segment m uses slot m mod credits. Within the
/// window [released, released + credits) they may arrive out of order. They are consumed in any order and
/// released in order.
struct InChannel {
  enum class Slot : std::uint8_t { kEmpty, kArrived, kConsumed };

  ChannelKey key;
  transport::PeerId peer = -1;
  EnginePort* port = nullptr;  ///< the port that returns credits
  const Connection* connection = nullptr;
  std::byte* staging = nullptr;      ///< of slot 0; null in phantom teams
  std::uint64_t staging_offset = 0;  ///< of slot 0 in the arena's chunk
  std::uint32_t slot_base = 0;
  std::uint32_t credit_token = 0;  ///< the token that returns credits to the peer, with its credits field 0
  std::uint64_t released = 0;
  std::uint32_t to_return = 0;  ///< released slots that have not been returned to the peer
  bool listed = false;          ///< in the team's list of channels with credits to return
  std::int32_t back = -1;       ///< out-channel to the peer in this lane; -1 if its headers carry no credits
  /// Grant cells of the peer; null if it accepts no grants.
  const transport::RemoteRegion* grant_cells = nullptr;
  std::uint64_t grant_offset = 0;  ///< offset of the first of its two cells
  std::uint32_t grant_token = 0;
  std::byte* grant_sources = nullptr;  ///< our copies of the grants, one for each turn
  transport::MemoryId grant_memory = -1;
  std::array<bool, kGrantTurns> granting{};  ///< by turn: a NIC is still reading the source
  std::vector<Slot> slots;

  [[nodiscard]] std::uint64_t number_of(std::int32_t slot) const {
    const auto credits = static_cast<std::uint64_t>(slots.size());
    return released + (static_cast<std::uint64_t>(slot) + credits - released % credits) % credits;
  }
  [[nodiscard]] bool arrived(std::uint64_t number) const {
    return number >= released && number < released + slots.size() &&
           slots[number % slots.size()] == Slot::kArrived;
  }
};

/// A port through which an out-channel can send, and the memory id of the channel's send slots on that port.
struct SendPath {
  EnginePort* port = nullptr;
  transport::MemoryId slots = -1;
};

/// Sends messages to a peer in one lane.
///
/// A NIC that needs registered memory sends from our send slots, one for each slot of the peer. A send slot
/// holds the header and a copy of the payload. It is free again when the peer has returned the credit and the
/// NIC has completed the send.
struct OutChannel {
  ChannelKey key;
  transport::PeerId peer = -1;
  const Connection* connection = nullptr;
  std::vector<SendPath> by_rail;                    ///< [0] is used for rails beyond the end
  const transport::RemoteRegion* remote = nullptr;  ///< the peer's staging
  std::uint64_t remote_offset = 0;                  ///< of slot 0
  std::uint32_t remote_slot_base = 0;
  std::vector<std::uint8_t> remote_generation;  ///< by slot
  std::uint32_t credit_slot = 0;                ///< our receive slot for credits that the peer returns
  std::uint32_t num_slots = 0;
  std::uint32_t credits = 0;  ///< free slots of the peer
  std::int32_t back = -1;     ///< in-channel from the peer in this lane; our segments carry its credits
  std::uint64_t next_number = 0;
  std::deque<OperationImpl*> operations;  ///< operations with segments left to send, oldest first
  std::vector<std::byte> headers;         ///< one header for each slot, valid until the credit returns
  std::byte* send_slots = nullptr;        ///< null if the transport sends directly from user memory
  std::vector<std::uint8_t> sending;      ///< by send slot: 1 while a NIC reads it
  /// Our cells, into which the peer writes its grants; null if it gives none.
  std::byte* grant_cells = nullptr;
  std::array<Grant, kGrantTurns> grants;  ///< the last valid grant of each turn

  [[nodiscard]] std::uint32_t next_slot() const {
    return static_cast<std::uint32_t>(next_number % num_slots);
  }
  /// Whether the peer and the send slots have room for another segment.
  [[nodiscard]] bool may_send() const {
    return credits > 0 && (send_slots == nullptr || sending[next_slot()] == 0);
  }
};

}  // namespace hips::exec
