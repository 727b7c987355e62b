#pragma once

#include <string_view>

namespace hips::topology {

/// Is this a port of a switch that runs Linux: "swp1" of Cumulus, "Ethernet0" of SONiC? NICs are not called so.
inline bool is_switch_port(std::string_view port) {
  for (const std::string_view begin : {"swp", "Ethernet"}) {
    if (!port.starts_with(begin) || port.size() == begin.size()) continue;
    const char next = port[begin.size()];
    if (next >= '0' && next <= '9') return true;
  }
  return false;
}

}  // namespace hips::topology
