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
struct Port;

/// What a peer sends us in one lane: `credits` slots of our staging, used round robin.
///
/// Segments are numbered through all operations; number m lies in slot m mod credits. They may arrive out of
/// order inside the window [released, released + credits), are consumed in any order, and released in order.
struct InChannel {
  enum class Slot : std::uint8_t { kEmpty, kArrived, kConsumed };

  ChannelKey key;
  transport::PeerId peer = -1;
  Port* port = nullptr;              ///< by which credits go back
  std::byte* staging = nullptr;      ///< of slot 0; null in phantom teams
  std::uint64_t staging_offset = 0;  ///< of slot 0 in the arena's chunk
  std::uint32_t slot_base = 0;
  std::uint32_t credit_token = 0;  ///< the peer's token for credits, with credits = 0
  std::uint64_t released = 0;
  std::uint64_t next_base = 0;  ///< number at which the next operation starts
  std::uint32_t to_return = 0;  ///< released, but the peer has not been told
  bool listed = false;          ///< in the team's list of channels with credits to return
  std::int32_t back = -1;       ///< out-channel to the peer in this lane; -1 where its headers say nothing
  const transport::RemoteRegion* grant_cells = nullptr;  ///< the peer's; null where it takes no grants
  std::uint64_t grant_offset = 0;                        ///< of its two cells
  std::uint32_t grant_token = 0;
  std::byte* grant_sources = nullptr;  ///< ours: what is put there, one for each turn
  transport::MemoryId grant_memory = -1;
  std::array<bool, kGrantTurns> granting{};  ///< by turn: a NIC still reads the source
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

/// A NIC by which an out-channel may send, and the name of the channel's send slots there.
struct Departure {
  Port* port = nullptr;
  transport::MemoryId slots = -1;
};

/// What we send a peer in one lane.
///
/// A NIC that reads registered memory only sends from slots of ours, one for each of the peer's: the header
/// and a copy of the payload. A slot is free again when the peer's is, and when the NIC has done with it.
struct OutChannel {
  ChannelKey key;
  transport::PeerId peer = -1;
  std::vector<Departure> by_rail;                   ///< [0] serves what lies beyond
  const transport::RemoteRegion* remote = nullptr;  ///< the peer's staging
  std::uint64_t remote_offset = 0;                  ///< of slot 0
  std::uint32_t remote_slot_base = 0;
  std::vector<std::uint8_t> remote_generation;  ///< by slot
  std::uint32_t credit_slot = 0;                ///< ours: where the peer returns credits
  std::uint32_t num_slots = 0;
  std::uint32_t credits = 0;  ///< slots we may fill
  std::int32_t back = -1;     ///< in-channel from the peer in this lane: its credits go along with segments
  std::uint64_t next_number = 0;
  std::deque<OperationImpl*> operations;  ///< with segments still to send, oldest first
  std::vector<std::byte> headers;         ///< a header per slot, alive until the slot comes back
  std::byte* send_slots = nullptr;        ///< null where user memory is sent from where it lies
  std::vector<std::uint8_t> sending;      ///< by send slot: 1 while a NIC reads it
  std::byte* grant_cells = nullptr;       ///< ours: where the peer puts its grants; null where it gives none
  std::array<Grant, kGrantTurns> grants;  ///< the last good ones

  [[nodiscard]] std::uint32_t next_slot() const {
    return static_cast<std::uint32_t>(next_number % num_slots);
  }
  /// The peer has room for another segment, and so have we.
  [[nodiscard]] bool may_send() const {
    return credits > 0 && (send_slots == nullptr || sending[next_slot()] == 0);
  }
};

}  // namespace hips::exec
