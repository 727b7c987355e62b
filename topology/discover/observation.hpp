#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hips::topology {

/// A NIC as the ranks of its server see it.
struct SeenNic {
  std::string name{};                ///< as a topology file has it: "mlx5_0", "eth1"
  std::string address{};             ///< "10.0.1.2"; empty where it has none
  std::string subnet{};              ///< "10.0.1.0/24"; empty where it has no address
  double bandwidth_bytes_per_s = 0;  ///< of the link, one direction; 0: the operating system does not say
};

/// A server and its NICs, in the order in which HiPS numbers them.
struct SeenServer {
  std::string host{};
  std::int32_t ranks = 1;
  std::vector<SeenNic> nics{};
};

/// How packets from one NIC to another one went.
struct SeenWay {
  std::size_t a = 0, a_nic = 0;  ///< server and NIC that sent
  std::size_t b = 0, b_nic = 0;
  bool reached = false;
  std::int32_t hops = 0;  ///< links on the way: 1 where no router was; 0: not known
  double latency_ns = 0;  ///< of a message in one direction, as the transport carries it; 0: not known
};

/// Everything that the ranks of a job see of the wiring between their servers. What no way tells is judged by
/// subnets.
struct Observation {
  std::vector<SeenServer> servers;
  std::vector<SeenWay> ways;
};

}  // namespace hips::topology
