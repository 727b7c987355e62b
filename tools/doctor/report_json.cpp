#include <algorithm>

#include "tools/doctor/report.hpp"

namespace hips::doctor {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json port_json(const Device& device, const DevicePort& port, const RailChoice& rails) {
  Json json{{"port", port.number},
            {"state", port.state},
            {"phys_state", port.phys_state},
            {"link_layer", port.link_layer},
            {"rate", port.rate},
            {"mtu", port.mtu > 0 ? Json(port.mtu) : Json(nullptr)}};
  json["interface"] = nullptr;
  if (!port.netdev.name.empty())
    json["interface"] = {{"name", port.netdev.name},
                         {"mtu", or_null(port.netdev.mtu)},
                         {"state", port.netdev.state},
                         {"counters", port.netdev.statistics}};
  const auto use = std::find_if(rails.ports.begin(), rails.ports.end(), [&](const PortUse& one) {
    return one.device == device.name && one.port == port.number;
  });
  json["rails"] = Json::array();
  json["gids"] = Json::array();
  if (use != rails.ports.end()) json["rails"] = use->rails;
  for (const verbs::Gid& gid : port.gids) {
    const bool taken = use != rails.ports.end() && use->gid && use->gid->gid == gid;
    const std::string text = gid.to_string();
    json["gids"].push_back({{"index", gid.index},
                            {"type", text.substr(0, text.find(" " + gid.address()))},
                            {"address", gid.address()},
                            {"taken", taken}});
  }
  json["why_not"] = use != rails.ports.end() && !use->why_not.empty() ? Json(use->why_not) : Json(nullptr);
  json["counters"] = port.counters;
  return json;
}

}  // namespace

Json node_json(const NodeFacts& node, const RailChoice& rails, const std::string& transports) {
  Json json{{"host", node.name},
            {"kernel", node.kernel},
            {"version", node.version},
            {"wire_version", node.wire_version},
            {"transports", transports}};
  json["devices"] = Json::array();
  for (const Device& device : node.devices) {
    Json one{{"name", device.name},         {"driver", device.driver},       {"model", device.model},
             {"firmware", device.firmware}, {"numa_node", device.numa_node}, {"software", device.software}};
    one["ports"] = Json::array();
    for (const DevicePort& port : device.ports) one["ports"].push_back(port_json(device, port, rails));
    json["devices"].push_back(std::move(one));
  }
  const ProcessLimits& limits = node.limits;
  json["limits"] = {{"locked_bytes", or_null(limits.locked_bytes)},
                    {"may_lock_all", limits.may_lock_all},
                    {"open_files", or_null(limits.open_files)},
                    {"shm_bytes", limits.shm_bytes},
                    {"shm_free_bytes", limits.shm_free_bytes},
                    {"memory_bytes", limits.memory_bytes},
                    {"memory_free_bytes", limits.memory_free_bytes},
                    {"huge_pages", limits.huge_pages},
                    {"cpus", limits.cpus},
                    {"num_cpus", limits.num_cpus},
                    {"num_online_cpus", limits.num_online_cpus}};
  return json;
}

Json findings_json(const Findings& findings) {
  Json json = Json::array();
  for (const DoctorFinding& finding : findings)
    json.push_back({{"level", to_string(finding.level)},
                    {"where", finding.where},
                    {"text", finding.text},
                    {"fix", finding.fix.empty() ? Json(nullptr) : Json(finding.fix)}});
  return json;
}

}  // namespace hips::doctor
