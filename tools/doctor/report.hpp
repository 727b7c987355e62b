#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/doctor/finding.hpp"
#include "tools/doctor/node.hpp"
#include "tools/doctor/rails.hpp"

namespace hips::doctor {

/// The facts of a node as text for people: devices, addresses, counters, limits.
std::string node_text(const NodeFacts& node, const RailChoice& rails, const std::string& transports);

/// The findings, worst first, each with its fix below it, and one line that counts them.
std::string findings_text(Findings findings);

/// The same as JSON; hips doctor --help lists the keys.
nlohmann::ordered_json node_json(const NodeFacts& node, const RailChoice& rails,
                                 const std::string& transports);
nlohmann::ordered_json findings_json(const Findings& findings);

}  // namespace hips::doctor
