#pragma once

#include <cstdint>
#include <string>

#include "lib/base/os/socket.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "transports/tcp/inbox.hpp"
#include "transports/tcp/outbox.hpp"
#include "transports/tcp/wire.hpp"
#include "transports/transport.hpp"

namespace hips::tcp {

/// One peer and the connection to it.
struct Endpoint {
  enum class State : std::uint8_t {
    kOpen,        ///< not yet connect()ed; a dialling peer may be at the door
    kConnecting,  ///< hellos are under way
    kConnected,
    kBroken,  ///< takes all requests and does nothing
  };

  Endpoint(transport::PeerId id, std::uint32_t queue_entries)
      : peer(id), mine(Token::random()), outbox(queue_entries) {}

  State state = State::kOpen;
  transport::PeerId peer;
  Token mine;               ///< what the peer says to find this endpoint
  Token theirs;             ///< from connect() on
  SocketAddress address{};  ///< the peer's listener, from connect() on
  std::string name{};       ///< "pid 17 on node1 (10.0.0.2:4711)"

  UniqueFd fd{};
  std::uint32_t watched = 0;  ///< what the epoll set looks for
  bool said_hello = false;
  Inbox inbox{};
  FrameHeader frame{};  ///< whose payload is under way, or which waits for room; kNone: none
  Outbox outbox;
  int send_error = 0;  ///< what the peer has sent still arrives

  bool ready = false;     ///< in the transport's queue of those that have something to read
  bool finished = false;  ///< in its queue of those that have something to report
};

}  // namespace hips::tcp
