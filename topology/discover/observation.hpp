#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hips::topology {

/// A NIC as the ranks of its server observe it.
struct SeenNic {
  std::string name{};                ///< for topology files: "mlx5_0", "eth1"
  std::string address{};             ///< "10.0.1.2"; empty if it has none
  std::string subnet{};              ///< "10.0.1.0/24"; empty if it has no address
  double bandwidth_bytes_per_s = 0;  ///< of the link, one direction; 0: not known
};

/// A server and its NICs, in the order in which HiPS numbers them.
struct SeenServer {
  std::string host{};
  std::int32_t ranks = 1;
  std::vector<SeenNic> nics{};
};

/// The observed path of packets from one NIC to another.
struct SeenPath {
  std::size_t a = 0, a_nic = 0;  ///< server and NIC that sent
  std::size_t b = 0, b_nic = 0;
  bool reached = false;
  std::int32_t hops = 0;  ///< links on the path: 1 without a router; 0: not known
  double latency_ns = 0;  ///< of a message in one direction by the transport; 0: not known
};

/// Everything that the ranks of a job observe of the wiring between their servers. Pairs of NICs without a
/// path are judged by their subnets.
struct Observation {
  std::vector<SeenServer> servers;
  std::vector<SeenPath> paths;
};

}  // namespace hips::topology
