#pragma once

#include <string>
#include <string_view>

#include "topology/cabling/node_role.hpp"
#include "topology/cabling/text_lines.hpp"

namespace hips::topology {

enum class CableUse { kNetwork, kPower, kConsole };

/// What a port of NetBox is for, by its type: "dcim.powerport" of its API and import, "power port" of its pages. Front and rear
/// ports of patch panels, and whatever is not known, count as ports of the network.
///
/// Source   NetBox, netbox/dcim/constants.py: CABLE_TERMINATION_MODELS.
inline CableUse use_of_port(std::string_view type) {
  std::string known;
  for (const char c : in_lower_case(type)) {
    if (c != ' ' && c != '_' && c != '-') known += c;
  }
  if (known.starts_with("dcim.")) known.erase(0, std::string_view("dcim.").size());
  if (is_one_of(known, {"powerport", "poweroutlet", "powerfeed"})) return CableUse::kPower;
  if (is_one_of(known, {"consoleport", "consoleserverport"})) return CableUse::kConsole;
  return CableUse::kNetwork;
}

/// What a cable of NetBox is for, by the types of its ports and its own, of which "power" is the only one that tells it.
inline CableUse use_of_cable(std::string_view a_port, std::string_view b_port, std::string_view cable) {
  if (const CableUse use = use_of_port(a_port); use != CableUse::kNetwork) return use;
  if (const CableUse use = use_of_port(b_port); use != CableUse::kNetwork) return use;
  return in_lower_case(cable) == "power" ? CableUse::kPower : CableUse::kNetwork;
}

}  // namespace hips::topology
