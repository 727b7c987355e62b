#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hips::topology {

/// A device that cables lead to: a server, a switch, or one that carries no data of jobs.
struct CabledNode {
  enum class Kind : std::uint8_t {
    kServer,
    kSwitch,
    kUnknown,  ///< the file does not tell: a server if it has few cables and none to another such node
  };
  std::string name{};  ///< as the file has it; of a server its host name
  Kind kind = Kind::kUnknown;
  std::int64_t line = 0;  ///< where the file names it first; 0: not known
};

/// One end of a cable.
struct CableEnd {
  std::size_t node = 0;  ///< index into Cabling::nodes
  std::string port{};    ///< "mlx5_0", "swp1", "7"; empty if the file does not tell
};

/// A cable between two nodes, full duplex.
struct Cable {
  CableEnd a{};
  CableEnd b{};
  double bandwidth_bytes_per_s = 0;  ///< one direction; 0: not known
  double latency_ns = 0;             ///< of one hop; 0: not known
  bool up = true;
  std::int64_t line = 0;  ///< of the file; 0: not known
};

/// What cables of a tier are called: those of servers, those above leaf switches, those above spines.
inline constexpr std::string_view kCableTiers[] = {"leaf", "spine", "core"};

/// The cables of a cluster as a file lists them, in the file's order. Each cable occurs once, even if the file lists it from
/// both ends.
struct Cabling {
  std::vector<CabledNode> nodes;
  std::vector<Cable> cables;
  bool has_uplinks = true;        ///< false: the file tells the leaf switches only, not what joins them
  bool heard_by_servers = false;  ///< servers told the cables, each its own, and no switch did
  std::vector<double>
      tier_rates;  ///< bytes/s of cables whose rate the file does not tell, by tier; 0: assumed
  std::vector<std::string> notes;  ///< what was ignored or assumed, one line for each kind
};

}  // namespace hips::topology
