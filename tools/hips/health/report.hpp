#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "topology/formats/topology_file.hpp"

namespace hips::health {

/// What an administrator wants to know of a topology, as lines for people: tiers and oversubscription, uneven switches, cables
/// unlike others, single points of failure, and predicted times. Lines that would say nothing are left out.
///
/// Cost     nearly linear in the cables, and the predictions.
/// Returns  "" for topologies of more than kMostCables cables.
std::string report_text(const topology::TopologyFile& file);

/// The same as JSON; null for those.
nlohmann::ordered_json report_json(const topology::TopologyFile& file);

/// "3.2 ms"
std::string time_text(double seconds);
/// "100 Gb/s"
std::string rate_text(double bytes_per_s);

}  // namespace hips::health
