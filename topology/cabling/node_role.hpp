#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "topology/cabling/cabling.hpp"
#include "topology/cabling/text_lines.hpp"

namespace hips::topology {

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// The kind of a node whose role, function, type or group is called so: "host", "l3leaf", "super-spine".
inline CabledNode::Kind kind_of_role(std::string_view role) {
  const std::string known = in_lower_case(role);
  if (is_one_of(known, {"host", "hosts", "server", "servers", "compute", "oob-server", "gpu"}))
    return CabledNode::Kind::kServer;
  for (const std::string_view part : {"leaf", "spine", "switch", "tor", "core", "exit", "edge", "agg"}) {
    if (known.find(part) != std::string::npos) return CabledNode::Kind::kSwitch;
  }
  return CabledNode::Kind::kUnknown;
}

}  // namespace hips::topology
