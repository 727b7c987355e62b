#include "tools/discover/job_report.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace hips::discover {
namespace {

using topology::Observation;
using topology::SeenNic;
using topology::SeenPath;

constexpr std::size_t kMostListed = 16;

/// The paths that were tried inside a subnet.
struct SubnetReach {
  std::vector<std::string> nics;
  std::size_t tried = 0, reached = 0;
  std::set<std::int32_t> hops;
};

std::string seen_rate_text(double bytes_per_s) {
  return bytes_per_s > 0 ? fmt::format("{:g} Gb/s", bytes_per_s * 8 / 1e9) : "rate unknown";
}

std::string listed(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostListed);
  return fmt::format("{}{}",
                     fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "");
}

std::string hops_text(const std::set<std::int32_t>& hops) {
  std::vector<std::string> known;
  for (const std::int32_t one : hops)
    if (one > 0) known.push_back(std::to_string(one));
  if (known.empty()) return "";
  return fmt::format(", {} hop{}", fmt::join(known, " or "),
                     known == std::vector<std::string>{"1"} ? "" : "s");
}

std::string reach_text(const SubnetReach& reach) {
  if (reach.tried == 0) return "not tried";
  return fmt::format("{} of {} pairs reach each other{}", reach.reached, reach.tried, hops_text(reach.hops));
}

void count(SubnetReach& reach, const SeenPath& path) {
  ++reach.tried;
  reach.reached += path.reached ? 1 : 0;
  if (path.reached) reach.hops.insert(path.hops);
}

}  // namespace

std::string job_text(const Observation& seen, const topology::Draft& draft) {
  std::string text = "Servers\n";
  std::size_t width = 0;
  for (const topology::SeenServer& server : seen.servers) width = std::max(width, server.host.size());
  std::map<std::string, SubnetReach> subnets;
  for (const topology::SeenServer& server : seen.servers) {
    std::vector<std::string> nics;
    for (const SeenNic& nic : server.nics) {
      nics.push_back(fmt::format("{} {} ({})", nic.name, nic.address.empty() ? "-" : nic.address,
                                 seen_rate_text(nic.bandwidth_bytes_per_s)));
      if (!nic.subnet.empty())
        subnets[nic.subnet].nics.push_back(fmt::format("{} {}", server.host, nic.name));
    }
    text += fmt::format("  {:<{}}  {} rank{}  {}\n", server.host, width, server.ranks,
                        server.ranks == 1 ? " " : "s", nics.empty() ? "no NIC" : listed(nics));
  }
  SubnetReach between;
  for (const SeenPath& path : seen.paths) {
    const SeenNic &a = seen.servers[path.a].nics[path.a_nic], &b = seen.servers[path.b].nics[path.b_nic];
    count(a.subnet == b.subnet ? subnets[a.subnet] : between, path);
  }
  text += "\nSubnets\n";
  for (const auto& [subnet, reach] : subnets)
    text += fmt::format("  {}: {}; {}\n", subnet, listed(reach.nics), reach_text(reach));
  if (between.tried > 0)
    text += fmt::format("  between subnets, NICs of equal number: {}\n", reach_text(between));
  text += fmt::format("\nTopology\n  {}{}\n", topology::topology_shape(draft.file.topology),
                      draft.fits ? "" : ", the most similar rack: no family matches these subnets");
  for (const std::string& note : draft.notes) text += fmt::format("  note: {}\n", note);
  return text;
}

std::string job_json(const Observation& seen, const topology::Draft& draft) {
  using Json = nlohmann::ordered_json;
  Json json{{"servers", Json::array()}, {"ways", Json::array()}};
  const auto or_null = [](const auto& value, bool known) { return known ? Json(value) : Json(); };
  for (const topology::SeenServer& server : seen.servers) {
    Json one{{"host", server.host}, {"ranks", server.ranks}, {"nics", Json::array()}};
    for (const SeenNic& nic : server.nics)
      one["nics"].push_back(
          {{"name", nic.name},
           {"address", or_null(nic.address, !nic.address.empty())},
           {"subnet", or_null(nic.subnet, !nic.subnet.empty())},
           {"bandwidth_bytes_per_s", or_null(nic.bandwidth_bytes_per_s, nic.bandwidth_bytes_per_s > 0)}});
    json["servers"].push_back(std::move(one));
  }
  for (const SeenPath& path : seen.paths)
    json["ways"].push_back({{"a", path.a},
                            {"a_nic", path.a_nic},
                            {"b", path.b},
                            {"b_nic", path.b_nic},
                            {"reached", path.reached},
                            {"hops", or_null(path.hops, path.hops > 0)},
                            {"latency_ns", or_null(path.latency_ns, path.latency_ns > 0)}});
  json["shape"] = topology::topology_shape(draft.file.topology);
  json["fits"] = draft.fits;
  json["notes"] = draft.notes;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hips::discover
