#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topology/cabling/lldp_neighbours.hpp"
#include "topology/cabling/text_lines.hpp"

// The two forms differ in what is a list. In "json" a list of one value is the value, and names are keys:
//   {"lldp": {"interface": {"eth0": {"via": "LLDP", "chassis": {"leaf1": {"id": {"type": "mac", "value": ...}}}}}}}
// In "json0" everything is a list, names are values, and text is a list of {"value": text}:
//   {"lldp": [{"interface": [{"name": "eth0", "via": "LLDP", "chassis": [{"name": [{"value": "leaf1"}]}]}]}]}

namespace hips::topology {
namespace {

using LldpJson = nlohmann::ordered_json;

/// The elements of a list, or the value itself.
template <typename Function>
void for_each_of(const LldpJson& value, const Function& function) {
  if (!value.is_array()) {
    function(value);
    return;
  }
  for (const LldpJson& element : value) function(element);
}

/// The first element of a list, or the value itself; null if there is none.
const LldpJson& first_of(const LldpJson& value) {
  static const LldpJson none;
  if (!value.is_array()) return value;
  return value.empty() ? none : value.front();
}

const LldpJson& member(const LldpJson& object, const char* key) {
  static const LldpJson none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

/// Text of any form: "x", {"value": "x"}, or [{"value": "x"}].
std::string text_of(const LldpJson& value) {
  const LldpJson& first = first_of(value);
  const LldpJson& inner = first.is_object() ? first_of(member(first, "value")) : first;
  return inner.is_string() ? inner.get<std::string>() : std::string();
}

void read_chassis(const LldpJson& value, LldpNeighbour& neighbour) {
  const LldpJson& chassis = first_of(value);
  if (!chassis.is_object() || chassis.empty()) return;
  const bool is_plain = chassis.contains("id") || chassis.contains("name");
  const LldpJson& inner = is_plain ? chassis : first_of(chassis.begin().value());
  neighbour.chassis = is_plain ? text_of(member(chassis, "name")) : chassis.begin().key();
  neighbour.chassis_id = text_of(member(inner, "id"));
  for_each_of(member(inner, "capability"), [&](const LldpJson& capability) {
    const std::string type = text_of(member(capability, "type"));
    const LldpJson& enabled = first_of(member(capability, "enabled"));
    if (enabled.is_boolean() && enabled.get<bool>() && (type == "Bridge" || type == "Router"))
      neighbour.is_bridge = true;
  });
}

LldpNeighbour read_interface(std::string interface, const LldpJson& body) {
  LldpNeighbour neighbour{.interface = std::move(interface)};
  neighbour.via = text_of(member(body, "via"));
  read_chassis(member(body, "chassis"), neighbour);
  const LldpJson& port = first_of(member(body, "port"));
  const LldpJson& id = first_of(member(port, "id"));
  neighbour.port_id = text_of(id);
  neighbour.port_id_type = text_of(member(id, "type"));
  neighbour.port_descr = text_of(member(port, "descr"));
  neighbour.mau = text_of(member(first_of(member(port, "auto-negotiation")), "current"));
  return neighbour;
}

}  // namespace

Result<std::vector<LldpNeighbour>> read_lldp_json(std::string_view name, std::int64_t first_line,
                                                  std::string_view text) {
  LldpJson root;
  try {
    root = LldpJson::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    return bad_line(name, first_line + std::count(text.begin(), end, '\n'),
                    "the text is no valid JSON; give the whole output of lldpctl -f json");
  } catch (const nlohmann::json::out_of_range&) {
    return bad_line(name, first_line,
                    "the text has a number that is too large; give the output of lldpctl -f json");
  }
  if (member(root, "lldp").is_null())
    return bad_line(name, first_line, "the text has no key \"lldp\"; give the output of lldpctl -f json");
  std::vector<LldpNeighbour> neighbours;
  for_each_of(member(root, "lldp"), [&](const LldpJson& lldp) {
    for_each_of(member(lldp, "interface"), [&](const LldpJson& entry) {
      if (!entry.is_object()) return;
      if (member(entry, "name").is_string()) {
        neighbours.push_back(read_interface(text_of(member(entry, "name")), entry));
        return;
      }
      for (const auto& [interface, bodies] : entry.items()) {
        for_each_of(bodies, [&, of = interface](const LldpJson& body) {
          neighbours.push_back(read_interface(of, body));
        });
      }
    });
  });
  return neighbours;
}

}  // namespace hips::topology
