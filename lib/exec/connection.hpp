#pragma once

#include <cstdint>

#include "transports/transport.hpp"

namespace hips::exec {

struct EnginePort;

/// One life of the connection between a port of this process and a port of a peer. All teams share it.
///
///     open --- connect() ---> ready --- lost ---> broken --- a later incarnation is opened ---> closed
///
/// Nothing is posted to a connection that is broken or closed, and none returns from there. Both ends count
/// incarnations. Before a team uses a connection, its ranks agree which incarnation that is: if one end has
/// lost the newest one, both open the next.
struct Connection {
  enum class State : std::uint8_t {
    kOpen,    ///< our endpoint exists; the peer's address is not known yet
    kReady,   ///< connected
    kBroken,  ///< `cause` says why
    kClosed,  ///< `cause` says why; our endpoint belongs to a later incarnation
  };
  EnginePort* port = nullptr;
  transport::PeerId peer = -1;
  std::uint32_t incarnation = 0;  ///< counts from 1
  transport::Address address;     ///< of our endpoint, for the peer
  State state = State::kOpen;
  Status cause{};

  [[nodiscard]] bool is_usable() const { return state <= State::kReady; }
};

}  // namespace hips::exec
