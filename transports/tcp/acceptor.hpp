#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "lib/base/os/socket.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"
#include "transports/tcp/link.hpp"
#include "transports/tcp/wire.hpp"

namespace hips::tcp {

/// Listens, and holds accepted connections until their hello has arrived (pending connections).
///
/// A connection that sends anything but a hello is closed at once; one that sends nothing is closed after ten
/// seconds. Neither affects other connections.
class Acceptor {
 public:
  /// A connection whose hello names an endpoint. The caller checks whether that endpoint exists.
  struct Accepted {
    UniqueFd fd;
    EndpointToken to;
  };

  /// `epoll` is the set in which the caller watches pending connections; dropped connections are removed
  /// from it.
  ///
  /// Errors   kSystem: the address is not one of this host.
  static Result<Acceptor> create(const SocketAddress& address, const LinkOptions& options, int epoll);

  [[nodiscard]] int listener() const { return listener_.get(); }
  [[nodiscard]] const SocketAddress& address() const { return address_; }

  /// Accepts one connection, non-blocking; -1 if none is waiting. The caller watches the descriptor and calls
  /// receive_hello() when it is readable. `num_expected`: connections that may wait for their hello, however late it is.
  int accept(std::size_t num_expected);
  /// Returns the connection once its hello is complete. A connection that ended or sent something else is
  /// closed by this call.
  std::optional<Accepted> receive_hello(int pending);
  /// Closes a connection whose hello nobody can wait for.
  void drop(int pending);
  /// False for one second after accept() ran out of descriptors. The caller must not watch the listener
  /// meanwhile, because it would be readable all the time.
  [[nodiscard]] bool may_accept() const;

 private:
  struct PendingConnection {
    UniqueFd fd;
    std::int64_t accepted_ns = 0;
    std::array<std::byte, sizeof(TcpHello)> received;
    std::size_t bytes = 0;  ///< received so far
  };

  using PendingMap = std::map<int, PendingConnection>;  ///< by descriptor

  Acceptor(UniqueFd listener, const LinkOptions& options, int epoll);
  PendingMap::iterator drop(PendingMap::iterator pending);
  void drop_expired();

  UniqueFd listener_;
  SocketAddress address_;
  LinkOptions options_;
  int epoll_;
  PendingMap pending_;
  std::int64_t paused_until_ns_ = 0;  ///< after accept() ran out of descriptors
};

}  // namespace hips::tcp
