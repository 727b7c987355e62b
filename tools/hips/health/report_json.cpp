#include <cstdint>

#include <nlohmann/json.hpp>

#include "tools/hips/health/predicted.hpp"
#include "tools/hips/health/report.hpp"
#include "topology/health/cabling_of.hpp"
#include "topology/health/health.hpp"

namespace hips::health {
namespace {

using Json = nlohmann::ordered_json;

Json switches_json(const topology::Cabling& cabling, const topology::Health& health) {
  Json list = Json::array();
  for (const topology::SwitchLoad& load : health.loads) {
    list.push_back(
        {{"switch", cabling.nodes[load.node].name},
         {"tier", health.tiers.of[load.node]},
         {"servers", load.servers},
         {"cables_down", load.below},
         {"cables_up", load.above},
         {"oversubscription",
          load.above > 0 ? Json(load.below_bytes_per_s / load.above_bytes_per_s) : Json(nullptr)}});
  }
  return list;
}

Json uneven_json(const topology::Cabling& cabling, const std::vector<topology::Uneven>& uneven) {
  Json list = Json::array();
  for (const topology::Uneven& one : uneven)
    list.push_back({{"name", cabling.nodes[one.node].name}, {"count", one.count}, {"usual", one.usual}});
  return list;
}

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

}  // namespace

nlohmann::ordered_json report_json(const topology::TopologyFile& file) {
  if (file.topology.num_links > kMostCables) return nullptr;
  const topology::Cabling cabling = topology::cabling_of(file);
  const topology::Health health = topology::examine(cabling);
  Json json;
  json["switches"] = switches_json(cabling, health);
  json["uneven_leaves"] = uneven_json(cabling, health.leaves);
  json["uneven_uplinks"] = uneven_json(cabling, health.uplinks);
  json["missing_cables"] = Json::array();
  for (const topology::MissingCables& one : health.missing)
    json["missing_cables"].push_back({{"lower", cabling.nodes[one.lower].name},
                                      {"upper", cabling.nodes[one.upper].name},
                                      {"count", one.count},
                                      {"usual", one.usual}});
  json["unlike_cables"] = Json::array();
  for (const topology::OddCable& odd : health.odd) {
    const topology::Cable& cable = cabling.cables[odd.cable];
    json["unlike_cables"].push_back({{"cable", topology::cable_text(cabling, health.tiers, odd.cable)},
                                     {"up", cable.up},
                                     {"bandwidth_bytes_per_s", cable.bandwidth_bytes_per_s},
                                     {"usual_bytes_per_s", odd.usual_bytes_per_s}});
  }
  json["single_points"] = Json::array();
  for (const topology::CutPoint& point : health.cut_points) {
    if (point.is_cable && point.only_single_servers) continue;
    json["single_points"].push_back(
        {{point.is_cable ? "cable" : "switch", point.is_cable
                                                   ? topology::cable_text(cabling, health.tiers, point.index)
                                                   : cabling.nodes[point.index].name},
         {"servers_cut_off", point.cut_off}});
  }
  json["servers_with_one_cable"] = health.servers_with_one_cable;
  json["servers_with_fewer_nics"] = uneven_json(cabling, health.fewer_nics);
  const Times times = predict(file, cabling, health);
  json["bytes"] = kBytes;
  json["seconds"] = number_or_null(times.all);
  json["leaf"] = times.leaf ? Json(cabling.nodes[times.leaf_node].name) : Json(nullptr);
  json["leaf_seconds"] = number_or_null(times.leaf);
  json["slow_cables"] = Json::array();
  for (const SlowCable& slow : times.slow)
    json["slow_cables"].push_back({{"cable", topology::cable_text(cabling, health.tiers, slow.cable)},
                                   {"usual_bytes_per_s", slow.usual_bytes_per_s},
                                   {"seconds_at_usual", slow.seconds}});
  return json;
}

}  // namespace hips::health
