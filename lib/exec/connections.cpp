#include <algorithm>
#include <array>
#include <utility>

#include "lib/exec/engine_impl.hpp"

namespace hips::exec {

Result<std::shared_ptr<Connection>> EngineImpl::open(EnginePort& port, transport::PeerId peer,
                                                     std::uint32_t incarnation) {
  if (!port.down.ok()) return fail(port.down);
  std::shared_ptr<Connection>& newest = port.connections[peer];
  if (newest != nullptr && newest->incarnation >= incarnation) {
    if (newest->incarnation == incarnation && newest->is_usable()) return newest;
    return fail(
        newest->is_usable()
            ? Status::error(Code::kPeerLost, "its connection has been opened again meanwhile", Scope::kPeer)
            : newest->cause);
  }
  if (newest != nullptr) {
    // First: until then its requests may be read.
    port.transport->close(peer);
    lose(*newest,
         Status::error(Code::kPeerLost, "the other end has lost the connection, which is opened again",
                       Scope::kPeer));
    newest->state = Connection::State::kClosed;
  }
  auto address = port.transport->open(peer);
  if (!address) return fail(std::move(address).error());
  newest = std::make_shared<Connection>(
      Connection{.port = &port, .peer = peer, .incarnation = incarnation, .address = *std::move(address)});
  return newest;
}

Status EngineImpl::connect(Connection& connection, std::span<const std::byte> theirs) {
  if (connection.state == Connection::State::kReady) return Status::success();
  if (!connection.is_usable()) return connection.cause;
  Status status = connection.port->transport->connect(connection.peer, theirs);
  if (!status.ok()) {
    lose(connection, status);
    return status;
  }
  connection.state = Connection::State::kReady;
  if (connection.incarnation > 1) release_abandoned();
  return status;
}

void EngineImpl::release_abandoned() {
  // The peer has closed its end before it opened the one whose address has come.
  const auto is_over = [](const std::shared_ptr<const Connection>& connection) {
    const auto& newest = connection->port->connections.at(connection->peer);
    return newest->incarnation > connection->incarnation && newest->state == Connection::State::kReady;
  };
  std::erase_if(abandoned, [&](const AbandonedStaging& staging) {
    if (!std::ranges::all_of(staging.connections, is_over)) return false;
    for (const auto& piece : staging.pieces) arena.release(piece);
    return true;
  });
}

void EngineImpl::lose(Connection& connection, const Status& cause) {
  if (!connection.is_usable()) return;
  connection.state = Connection::State::kBroken;
  connection.cause = kept(cause);
  EnginePort& port = *connection.port;
  const auto is_lost = [&](const Posted& record) {
    return record.port == &port && record.peer == connection.peer;
  };
  const auto give_up = [this](const Posted& lost) {
    if (lost.operation != nullptr) guard(*lost.team, [&] { lost.team->on_unacknowledged(lost); });
  };
  // Where requests complete when they are posted, they have no record in `posted`.
  std::array<Posted, EnginePort::kBatch + 1> batched;
  std::size_t num_batched = 0;
  port.remove_batched_if([&](std::size_t i) {
    if (!is_lost(port.batched[i])) return false;
    if (port.transport->query().completes_on_post) batched[num_batched++] = port.batched[i];
    return true;
  });
  for (std::size_t i = 0; i < num_batched; ++i) give_up(batched[i]);
  for (std::uint32_t index = 0; index < posted.size(); ++index) {
    if (!is_lost(posted[index])) continue;
    const Posted lost = posted[index];
    release(index);
    give_up(lost);
  }
  for (EngineTeam* team : teams) guard(*team, [&] { team->on_broken(connection); });
}

}  // namespace hips::exec
