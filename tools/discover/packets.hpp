#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "lib/base/result.hpp"
#include "lib/base/socket.hpp"
#include "lib/base/unique_fd.hpp"

namespace hips::discover {

/// Which NIC of which server a packet left, and which one it is for.
struct PacketLabel {
  std::uint64_t job = 0;  ///< strangers' packets have another one
  std::uint32_t from_server = 0, from_nic = 0, to_server = 0, to_nic = 0;
};

/// A packet that has arrived.
struct Arrival {
  PacketLabel label;
  std::int32_t hops = 0;  ///< links that it has passed: 1 without a router
};

/// Sends and receives datagrams by one NIC: they leave by it and count only where they came by it, so that a
/// host that answers for all its addresses by any of its NICs deceives nobody.
class PacketSocket {
 public:
  /// Errors   kSystem: there is no such address here, or no socket is left.
  static Result<PacketSocket> open(const std::string& address, const std::string& interface);

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// May be lost, as all datagrams.
  void send(const std::string& address, std::uint16_t port, const PacketLabel& label) const;
  /// The next one that is there.
  [[nodiscard]] std::optional<Arrival> receive() const;

 private:
  UniqueFd fd_;
  unsigned interface_idx_ = 0;
};

}  // namespace hips::discover
