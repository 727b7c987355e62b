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

/// Listens, and keeps those who have connected but not said who they are looking for.
///
/// Whoever says no hello of ours is sent away, at once or after ten seconds, and disturbs nobody.
class Doorman {
 public:
  /// A connection whose hello names an endpoint; whether there is one, the caller knows.
  struct Guest {
    UniqueFd fd;
    Token to;
  };

  /// Whoever is sent away is also taken out of the `epoll` set, which the caller watches strangers with.
  ///
  /// Errors   kSystem: the address is not one of this host.
  static Result<Doorman> create(const SocketAddress& address, const LinkOptions& options, int epoll);

  [[nodiscard]] int listener() const { return listener_.get(); }
  [[nodiscard]] const SocketAddress& address() const { return address_; }

  /// A stranger that is at the door, non-blocking; -1 where there is none. Watch it, and hear() it.
  int accept();
  /// What a stranger says, once it has said all. One that hangs up or says something else is gone after this.
  std::optional<Guest> hear(int stranger);
  /// False for a moment after accept() found no descriptor left: the listener is not to be watched then,
  /// because it would be readable all the time.
  [[nodiscard]] bool may_accept() const;

 private:
  struct Stranger {
    UniqueFd fd;
    std::int64_t since_ns = 0;
    std::array<std::byte, sizeof(Hello)> said;
    std::size_t bytes = 0;
  };

  using Strangers = std::map<int, Stranger>;  ///< by descriptor

  Doorman(UniqueFd listener, const LinkOptions& options, int epoll);
  Strangers::iterator send_away(Strangers::iterator stranger);
  void send_away_the_silent();

  UniqueFd listener_;
  SocketAddress address_;
  LinkOptions options_;
  int epoll_;
  Strangers strangers_;
  std::int64_t refused_until_ns_ = 0;  ///< no descriptor was left
};

}  // namespace hips::tcp
