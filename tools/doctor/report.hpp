#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/doctor/finding.hpp"
#include "tools/doctor/host.hpp"
#include "tools/doctor/rails.hpp"

namespace hips::doctor {

/// What was seen on a host, for people: devices, addresses, counters, limits.
std::string host_text(const Host& host, const RailChoice& rails, const std::string& transports);

/// Findings, worst first, each with its fix below it, and one line that counts them.
std::string findings_text(Findings findings);

/// The same for machines; hips doctor --help lists the keys.
nlohmann::ordered_json host_json(const Host& host, const RailChoice& rails, const std::string& transports);
nlohmann::ordered_json findings_json(const Findings& findings);

}  // namespace hips::doctor
