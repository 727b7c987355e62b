#include <array>
#include <map>

#include "topology/cabling/lldp_neighbours.hpp"
#include "topology/cabling/text_lines.hpp"

namespace hips::topology {
namespace {

/// Where the key behind the interface begins, whose name may have dots: "lldp.eth0.100.port.ifname".
std::size_t find_field(std::string_view key) {
  constexpr std::array<std::string_view, 10> kFields = {".via",       ".rid",         ".age",   ".chassis.",
                                                        ".port.",     ".vlan",        ".ppvid", ".pi.",
                                                        ".lldp-med.", ".unknown-tlvs"};
  std::size_t first = std::string_view::npos;
  for (const std::string_view field : kFields) first = std::min(first, key.find(field));
  return first;
}

void take_field(LldpNeighbour& neighbour, std::string_view field, std::string_view value) {
  // Of a key that is repeated, such as management addresses, the first counts.
  const auto set = [&](std::string& to) {
    if (to.empty()) to = value;
  };
  if (field == "via") set(neighbour.via);
  if (field == "chassis.name") set(neighbour.chassis);
  if (field == "chassis.mac" || field == "chassis.local" || field == "chassis.ifname" ||
      field == "chassis.ip")
    set(neighbour.chassis_id);
  if (field == "port.descr") set(neighbour.port_descr);
  if (field == "port.auto-negotiation.current") set(neighbour.mau);
  for (const std::string_view type : {"ifname", "mac", "local"}) {
    if (!field.starts_with("port.") || field.substr(5) != type || !neighbour.port_id.empty()) continue;
    neighbour.port_id = value;
    neighbour.port_id_type = type;
  }
  if ((field == "chassis.Bridge.enabled" || field == "chassis.Router.enabled") && value == "on")
    neighbour.is_bridge = true;
}

}  // namespace

std::vector<LldpNeighbour> read_lldp_keyvalue(std::string_view text) {
  std::vector<LldpNeighbour> neighbours;
  std::map<std::string, std::size_t, std::less<>> current;  // by interface
  TextLines lines(text);
  while (const auto next = lines.next()) {
    const std::string_view line = without_blanks(*next);
    constexpr std::string_view kPrefix = "lldp.";
    if (!line.starts_with(kPrefix)) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = line.substr(kPrefix.size(), equals - kPrefix.size());
    const std::size_t at = find_field(key);
    if (at == std::string_view::npos || at == 0) continue;
    const std::string_view interface = key.substr(0, at), field = key.substr(at + 1);
    auto known = current.find(interface);
    if (known == current.end() || (field == "via" && !neighbours[known->second].via.empty())) {
      known = current.insert_or_assign(std::string(interface), neighbours.size()).first;
      neighbours.push_back({.interface = std::string(interface), .line = lines.number()});
    }
    take_field(neighbours[known->second], field, without_blanks(line.substr(equals + 1)));
  }
  return neighbours;
}

}  // namespace hips::topology
