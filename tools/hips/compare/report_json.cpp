#include <nlohmann/json.hpp>

#include "tools/hips/compare/report.hpp"

namespace hips::compare {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const PlanCost& plan) {
  Json json = {{"plan", plan.entry.name},
               {"algorithm", plan.entry.request.algorithm},
               {"baseline", plan.entry.baseline},
               {"topology", plan.entry.wiring}};
  if (plan.basis == Basis::kNone) {
    json["priced_by"] = nullptr;
    json["reason"] = plan.reason;
    return json;
  }
  json["priced_by"] = to_string(plan.basis);
  json["scaled"] = plan.scaled;
  json["description"] = plan.description;
  json["relays"] = plan.relays;
  json["num_steps"] = plan.num_steps;
  json["num_hops"] = plan.num_hops;
  json["num_messages"] = plan.num_messages;
  json["fan_in"] = plan.fan_in;
  json["busiest_link"] = plan.busiest;
  json["bandwidth_of_bound"] = plan.bandwidth_of_bound;
  json["sizes"] = Json::array();
  for (const SizeCost& cost : plan.sizes) {
    json["sizes"].push_back({{"bytes", cost.bytes},
                             {"seconds", cost.seconds},
                             {"latency_seconds", cost.latency_seconds},
                             {"bandwidth_seconds", cost.bandwidth_seconds},
                             {"busiest_bytes", cost.busiest_bytes},
                             {"of_bound", cost.of_bound}});
  }
  return json;
}

Json json_of(const Comparison& comparison) {
  const Topology& topology = comparison.topology;
  Json json = {{"topology", topology.spec},
               {"name", topology.name},
               {"num_ranks", topology.num_ranks()},
               {"num_servers", topology.num_servers()},
               {"nics_per_server", topology.num_rails},
               {"bound",
                {{"cut", comparison.bound.cut().name},
                 {"seconds_per_byte", comparison.bound.cut().seconds_per_byte}}}};
  json["plans"] = Json::array();
  for (const PlanCost& plan : comparison.plans) json["plans"].push_back(json_of(plan));
  json["best"] = Json::array();
  for (std::size_t i = 0; i < comparison.sizes.size(); ++i) {
    const std::size_t best = comparison.best[i];
    Json row = {{"bytes", comparison.sizes[i]}, {"plan", nullptr}};
    if (best < comparison.plans.size()) row["plan"] = comparison.plans[best].entry.name;
    json["best"].push_back(std::move(row));
  }
  json["default"] = Json::array();
  for (const Selected& selected : comparison.selected) {
    Json row = {{"plan", selected.plan}, {"up_to_bytes", nullptr}};
    if (selected.up_to_bytes != UINT64_MAX) row["up_to_bytes"] = selected.up_to_bytes;
    json["default"].push_back(std::move(row));
  }
  return json;
}

}  // namespace

std::string report_json(std::span<const Comparison> comparisons) {
  Json json = {{"format", "hips-compare"}, {"version", 1}};
  json["topologies"] = Json::array();
  for (const Comparison& comparison : comparisons) json["topologies"].push_back(json_of(comparison));
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hips::compare
