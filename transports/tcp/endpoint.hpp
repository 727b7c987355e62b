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
struct TcpEndpoint {
  enum class State : std::uint8_t {
    kOpen,        ///< before connect(); the peer may have connected already
    kConnecting,  ///< waits for the peer's hello
    kConnected,
    kBroken,  ///< accepts requests and discards them
  };

  TcpEndpoint(transport::PeerId id, std::uint32_t queue_entries)
      : peer(id), own_token(EndpointToken::random()), outbox(queue_entries) {}

  State state = State::kOpen;
  transport::PeerId peer;
  EndpointToken own_token;   ///< the peer's hello carries it
  EndpointToken peer_token;  ///< known after connect()
  SocketAddress address{};   ///< of the peer's listener, known after connect()
  std::string name{};        ///< "pid 17 on node1 (10.0.0.2:4711)"

  UniqueFd fd{};
  std::uint32_t watched = 0;  ///< epoll events
  bool hello_sent = false;
  Inbox inbox{};
  FrameHeader frame{};  ///< whose payload is being received, or whose event has no room yet; kNone: none
  Outbox outbox;
  int send_error = 0;  ///< errno; data that the peer sent before still arrives

  bool ready = false;     ///< is in TcpTransport::ready_
  bool finished = false;  ///< is in TcpTransport::finished_
};

}  // namespace hips::tcp
