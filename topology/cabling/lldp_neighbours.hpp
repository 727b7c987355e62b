#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::topology {

/// What one interface of a host has heard from a neighbour.
struct LldpNeighbour {
  std::string interface {};    ///< of the host
  std::string via{};           ///< "LLDP"; empty if the text does not tell
  std::string chassis{};       ///< its name; without one empty
  std::string chassis_id{};    ///< a MAC address, ...
  std::string port_id{};       ///< the name of its port, or a MAC address
  std::string port_id_type{};  ///< "ifname", "mac", "local"
  std::string port_descr{};
  std::string mau{};       ///< "100GBaseCR4 - ...": how the link came up
  bool is_bridge = false;  ///< bridges or routes
  std::int64_t line = 0;   ///< of the text; 0: not known
  friend bool operator==(const LldpNeighbour&, const LldpNeighbour&) = default;
};

/// The most bytes of one host: far more than lldpctl writes.
inline constexpr std::size_t kMostLldpBytes = std::size_t{4} << 20U;

/// Reads what `lldpctl -f json` or `-f json0` wrote. `first_line` is where the text begins in its file.
///
/// Errors   kInvalidArgument: `name` of the file, line, what is wrong and what would be right.
Result<std::vector<LldpNeighbour>> read_lldp_json(std::string_view name, std::int64_t first_line,
                                                  std::string_view text);

/// Reads what `lldpctl -f keyvalue` wrote. Lines that continue a description are left out. A second "via" of an interface begins
/// another neighbour.
std::vector<LldpNeighbour> read_lldp_keyvalue(std::string_view text);

}  // namespace hips::topology
