#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "lib/base/os/socket.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips::discover {

/// The sending and the receiving NIC of a packet.
struct PacketLabel {
  std::uint64_t job = 0;  ///< random, to recognise packets of other programs
  std::uint32_t from_server = 0, from_nic = 0, to_server = 0, to_nic = 0;
};

/// A packet that has arrived.
struct Arrival {
  PacketLabel label;
  std::int32_t hops = 0;  ///< links that it has passed: 1 without a router
};

/// Sends and receives datagrams through one NIC. Packets that arrive through another NIC are ignored, because
/// a node may answer for all its addresses on any of its NICs.
class PacketSocket {
 public:
  /// Errors   kSystem: this node does not have the address, or cannot create a socket.
  static Result<PacketSocket> open(const std::string& address, const std::string& interface);

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The packet may be lost, like all datagrams.
  void send(const std::string& address, std::uint16_t port, const PacketLabel& label) const;
  /// The next received packet; nullopt if there is none.
  [[nodiscard]] std::optional<Arrival> receive() const;

 private:
  UniqueFd fd_;
  unsigned interface_idx_ = 0;
};

}  // namespace hips::discover
