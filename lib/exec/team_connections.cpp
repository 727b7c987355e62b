#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/exec/team_impl.hpp"

namespace hips::exec {

// ---- Agreement on incarnations -------------------------------------------------------------------------

// Offers name the connections that a rank has with the peer. Both ends know both entries, so they choose alike.
std::vector<TeamImpl::ConnectionEntry> TeamImpl::connections_to(Rank rank) const {
  const Route& route = routes_.at(rank);
  std::set<std::size_t> used;  // positions of our rails
  for (const std::int32_t c : channels_.in_of(rank))
    used.insert(Route::index(route.by_rail, channels_.in_rails[c]));
  for (const std::int32_t c : channels_.out_of(rank))
    used.insert(Route::index(route.by_rail, channels_.out_rails[c]));
  std::vector<ConnectionEntry> entries;
  for (const std::size_t rail : used) {
    const auto& connections = engine_.port_of(route.by_rail[rail])->connections;
    for (std::size_t peer_rail = 0; peer_rail < route.by_peer_rail.size(); ++peer_rail) {
      const auto found = connections.find(route.by_peer_rail[peer_rail]);
      if (found == connections.end() || found->second == nullptr) continue;
      entries.push_back({.rank = config_.rank,
                         .peer = rank,
                         .rail = static_cast<Rail>(rail),
                         .peer_rail = static_cast<Rail>(peer_rail),
                         .incarnation = found->second->incarnation,
                         .is_lost = found->second->is_usable() ? 0U : 1U});
    }
  }
  return entries;
}

std::uint32_t TeamImpl::agreed_incarnation(Rank rank, Rail rail, Rail peer_rail) const {
  const Route& route = routes_.at(rank);
  const auto ours = static_cast<Rail>(Route::index(route.by_rail, rail));
  const auto theirs = static_cast<Rail>(Route::index(route.by_peer_rail, peer_rail));
  std::uint32_t newest = 1;
  bool is_lost = false;
  for (const ConnectionEntry& entry : offered_connections_) {
    const bool is_ours = entry.peer == rank && entry.rail == ours && entry.peer_rail == theirs;
    const bool is_theirs = entry.rank == rank && entry.rail == theirs && entry.peer_rail == ours;
    if ((!is_ours && !is_theirs) || entry.incarnation < newest) continue;
    is_lost = (entry.incarnation == newest && is_lost) || entry.is_lost != 0;
    newest = entry.incarnation;
  }
  return is_lost ? newest + 1 : newest;
}

// ---- Connections ---------------------------------------------------------------------------------------

Result<Connection*> TeamImpl::open_connection(Rank rank, Rail rail, Rail peer_rail) {
  const Route& route = routes_.at(rank);
  auto opened = engine_.open(*engine_.port_of(route.transport(rail)), route.peer(peer_rail),
                             agreed_incarnation(rank, rail, peer_rail));
  if (!opened) return hips::fail(unreached(rank, rail, std::move(opened).error()));
  connections_.push_back({rank, *opened});
  return opened->get();
}

Result<Connection*> TeamImpl::join_connection(Rank rank, Rail rail, Rail peer_rail, std::uint32_t incarnation,
                                              std::span<const std::byte> address) {
  const Route& route = routes_.at(rank);
  const EnginePort* port = engine_.port_of(route.transport(rail));
  const transport::PeerId peer = route.peer(peer_rail);
  const auto found = std::ranges::find_if(connections_, [&](const UsedConnection& used) {
    return used.connection->port == port && used.connection->peer == peer;
  });
  if (found == connections_.end()) return hips::fail(disagreement({rank, -1}));
  Connection& connection = *found->connection;
  if (connection.incarnation != incarnation) {
    return hips::fail(unreached(
        rank, rail,
        Status::error(Code::kPeerLost,
                      fmt::format("its end of the connection has incarnation {}, ours {}; create the "
                                  "communicator again",
                                  incarnation, connection.incarnation),
                      Scope::kPeer)));
  }
  if (Status status = engine_.connect(connection, address); !status.ok())
    return hips::fail(unreached(rank, rail, std::move(status)));
  return &connection;
}

// ---- Losses --------------------------------------------------------------------------------------------

void TeamImpl::on_broken(const Connection& connection) {
  for (const UsedConnection& used : connections_) {
    if (used.connection.get() != &connection) continue;
    has_lost_connection_ = true;
    report_lost(used);
    return;
  }
}

void TeamImpl::on_port(const EnginePort& port) {
  const auto is_of_port = [&](const UsedConnection& use) { return use.connection->port == &port; };
  if (std::ranges::none_of(connections_, is_of_port)) return;
  // One that came up again before a call began is as if nothing had been; another one may be down.
  port_down_ = port.down;
  for (const UsedConnection& use : connections_)
    if (port_down_.ok()) port_down_ = use.connection->port->down;
  if (port_down_.ok()) return;
  port_down_.scope = Scope::kLink;
  if (!in_flight_.empty()) report(port_down_);
}

void TeamImpl::report_losses() {
  if (!port_down_.ok()) report(port_down_);
  if (!has_lost_connection_) return;
  for (const UsedConnection& used : connections_)
    if (!used.connection->is_usable()) report_lost(used);
}

void TeamImpl::report_lost(const UsedConnection& lost) {
  if (left_[static_cast<std::size_t>(lost.rank)]) return;
  Status status = lost.connection->cause;
  status.code = Code::kPeerLost;
  status.scope = Scope::kPeer;
  status.rank = lost.rank;
  status.message = fmt::format("rank {} is lost: {}", lost.rank, status.message);
  if (!in_flight_.empty()) {
    const std::string missing = missing_text(*in_flight_.front());
    if (!missing.empty()) status.message += "; waiting for " + missing;
  }
  // The peer may have shut down, and the message that says so may still be on its way. Then this is no
  // failure, and a later failure has to be reported.
  if (config_.on_error && !failed()) {
    config_.on_error(status);
  } else {
    report(std::move(status));
  }
}

}  // namespace hips::exec
