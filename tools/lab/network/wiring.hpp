#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::lab {

/// One NIC of a server and what it is plugged into.
struct Port {
  std::int64_t server = 0;
  Rail rail = 0;
  std::string tap;  ///< of the lab's side: "s0n1"
  std::string mac;  ///< of the guest's side
  std::int64_t bridge = 0;
  std::int64_t segment = 0;
  std::string ip;  ///< without the prefix length, which is 24
};

/// A cable between two switches: a pair of virtual interfaces, one at each bridge.
struct Trunk {
  std::int64_t a = 0, b = 0;  ///< bridges
  std::string a_end, b_end;   ///< interfaces: "t3a", "t3b"
};

/// "Frames to this server's NIC leave this bridge by that interface."
struct Forwarding {
  std::string mac, interface;
};

/// A topology as bridges, taps and addresses.
///
/// A switch is a bridge, and so is a Torus cable: two taps on one. What is joined by bridges is a *segment*,
/// an IP subnet 10.S.S.0/24 of its own: a rail reaches the rails of its own switch and nothing else. A
/// segment of several switches (a Fat-Tree) has loops, which learning bridges would flood for ever. There
/// learning and flooding are off and every bridge has a fixed table, as the paper's two-level routing has it:
/// where several ways are shortest, the digits of the destination choose, so that all cables are used, each
/// pair of servers has one path, frames keep their order, and all frames to one server follow a tree. Nothing
/// may be broadcast then: guests know their neighbours' addresses beforehand.
///
/// Source   Al-Fares et al., SIGCOMM 2008, section 3.3.
struct Wiring {
  std::vector<std::string> bridges;       ///< interface names: "b0"
  std::vector<std::string> bridge_names;  ///< for people: "level 0 switch 2"; empty for a cable
  std::vector<Port> ports;                ///< by server, then rail
  std::vector<Trunk> trunks;
  std::vector<Forwarding> tables;
  std::vector<bool> fixed;  ///< by segment: tables instead of learning

  [[nodiscard]] std::vector<Port> ports_of(std::int64_t server) const;
};

/// Bridges, taps and addresses of a topology.
///
/// Threads  pure; any thread.
/// Errors   kUnsupported: more servers than the lab has addresses for.
Result<Wiring> wire(const Topology& topology);

/// For the lab of one guest: a device for each set of rails that talk to one another, because devices of one
/// guest do not reach each other. Gives the device of each rail: {0, 1} for BCube(n,1), {0, 0, 1, 1} for a
/// Torus of two dimensions, whose "+" and "-" NICs are joined.
std::vector<std::int64_t> shared_devices(const Topology& topology);

/// Address of a server in the management network 10.99.0.0/16, which joins all guests.
std::string management_ip(std::int64_t server);
std::string management_mac(std::int64_t server);

}  // namespace hips::lab
