#include "tools/doctor/job.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include <hips/topology.hpp>

#include "tools/doctor/report.hpp"

namespace hips::doctor {
namespace {

using Json = nlohmann::ordered_json;

constexpr Rank kMostForAllPairs = 32;

RailReport rail_report(const NodeFacts& node, const PortUse& use) {
  const std::string address = use.gid->gid.address(), text = use.gid->gid.to_string();
  RailReport rail{.name = use.name, .address = address, .kind = text.substr(0, text.find(" " + address))};
  for (const Device& device : node.devices) {
    for (const DevicePort& port : device.ports) {
      if (device.name != use.device || port.number != use.port) continue;
      rail.interface = port.netdev.name;
      rail.mtu = port.mtu;
      rail.software = device.software;
    }
  }
  return rail;
}

FindingLevel level_of(const std::string& text) {
  for (const FindingLevel level : {FindingLevel::kOk, FindingLevel::kNote, FindingLevel::kWarning})
    if (text == to_string(level)) return level;
  return FindingLevel::kError;
}

/// The first rank of each node, or all ranks of a small job.
std::set<Rank> leaders(std::span<const RankReport> reports) {
  std::set<Rank> ranks;
  std::set<std::string> nodes;
  for (const RankReport& report : reports)
    if (static_cast<Rank>(reports.size()) <= kMostForAllPairs || nodes.insert(report.node_key).second)
      ranks.insert(report.rank);
  return ranks;
}

/// The pairs of rails that connect two servers of the topology.
using RailPairs = std::set<std::pair<Rail, Rail>>;

RailPairs connected_rails(const Topology& topology, Rank a, Rank b) {
  RailPairs pairs;
  for (const Hop& hop : topology.neighbours(a))
    if (hop.to / topology.ranks_per_server == b / topology.ranks_per_server && hop.out != kNoRail)
      pairs.insert({hop.out, hop.in});
  return pairs;
}

/// The topology, if all ranks read the same one: otherwise they would try different paths.
std::optional<Topology> topology_of(std::span<const RankReport> reports) {
  const std::string& spec = reports.front().topology;
  if (spec.empty()) return std::nullopt;
  for (const RankReport& report : reports)
    if (report.wiring != reports.front().wiring) return std::nullopt;
  try {
    Topology topology = parse_topology(spec);
    if (topology.num_ranks() != static_cast<Rank>(reports.size())) return std::nullopt;
    return topology;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// What a spec is on this rank, as far as it does not say that itself: files differ, and may be missing.
std::string wiring_of(const std::string& spec) {
  if (spec.empty()) return {};
  try {
    const std::string parsed = parse_topology(spec).spec;
    return parsed == spec ? std::string() : fmt::format("{} ({})", spec, parsed);
  } catch (const Error& error) {
    return fmt::format("{} ({})", spec, error.status().message);
  }
}

}  // namespace

bool names_file(std::string_view spec) {
  return spec.starts_with("file:") || spec.find(".yaml") != spec.npos || spec.find(".yml") != spec.npos;
}

RankReport report_of(Rank rank, const NodeFacts& node, const Config& config, const RailChoice& rails) {
  RankReport report;
  report.rank = rank;
  report.pid = getpid();
  report.host = node.name;
  report.node_key = node.key;
  report.version = node.version;
  report.transport = config.transport;
  report.topology = config.topology.value_or("");
  report.wiring = wiring_of(report.topology);
  if (!node.limits.may_lock_all) report.locked_bytes = node.limits.locked_bytes;
  report.cpus = node.limits.cpus;
  report.num_online_cpus = node.limits.num_online_cpus;
  for (const std::size_t at : rails.by_rail) report.rails.push_back(rail_report(node, rails.ports[at]));
  // HiPS uses no rail at all if one of them is invalid.
  if (!rails.problem.ok()) {
    report.no_rails = rails.problem.message;
    report.rails.clear();
  }
  if (report.rails.empty() && report.no_rails.empty()) report.no_rails = "no RDMA device";
  return report;
}

std::string encode(const RankReport& report) {
  Json json{{"rank", report.rank},         {"pid", report.pid},
            {"host", report.host},         {"node_key", report.node_key},
            {"version", report.version},   {"transport", report.transport},
            {"topology", report.topology}, {"wiring", report.wiring},
            {"cpus", report.cpus},         {"num_online_cpus", report.num_online_cpus},
            {"no_rails", report.no_rails}, {"findings", findings_json(report.findings)},
            {"details", report.details}};
  if (report.locked_bytes) json["locked_bytes"] = *report.locked_bytes;
  json["rails"] = Json::array();
  for (const RailReport& rail : report.rails)
    json["rails"].push_back({{"name", rail.name},
                             {"address", rail.address},
                             {"kind", rail.kind},
                             {"interface", rail.interface},
                             {"mtu", rail.mtu},
                             {"software", rail.software}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<RankReport> decode_report(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    RankReport report;
    json.at("rank").get_to(report.rank);
    json.at("pid").get_to(report.pid);
    json.at("host").get_to(report.host);
    json.at("node_key").get_to(report.node_key);
    json.at("version").get_to(report.version);
    json.at("transport").get_to(report.transport);
    json.at("topology").get_to(report.topology);
    json.at("wiring").get_to(report.wiring);
    json.at("cpus").get_to(report.cpus);
    json.at("num_online_cpus").get_to(report.num_online_cpus);
    json.at("no_rails").get_to(report.no_rails);
    if (json.contains("locked_bytes")) report.locked_bytes = json["locked_bytes"].get<std::uint64_t>();
    for (const Json& rail : json.at("rails"))
      report.rails.push_back({rail.at("name"), rail.at("address"), rail.at("kind"), rail.at("interface"),
                              rail.at("mtu").get<std::int32_t>(), rail.at("software").get<bool>()});
    for (const Json& one : json.at("findings"))
      report.findings.push_back({level_of(one.at("level")), one.at("where"), one.at("text"),
                                 one.at("fix").is_null() ? std::string() : one.at("fix").get<std::string>()});
    report.details = json.at("details");
    return report;
  } catch (const Json::exception& error) {
    return fail(Code::kMismatch, std::string("malformed report of a rank: ") + error.what());
  }
}

std::vector<ProbePath> paths_to_try(std::span<const RankReport> reports, bool all_nics) {
  std::vector<ProbePath> paths;
  const std::set<Rank> chosen = leaders(reports);
  const std::optional<Topology> topology = topology_of(reports);
  const std::string& transport = reports.front().transport;
  if (transport == "tcp") return paths;  // only NICs and shared memory are probed
  const auto size = static_cast<Rank>(reports.size());
  for (Rank a = 0; a < size; ++a) {
    for (Rank b = a + 1; b < size; ++b) {
      const RankReport& at_a = reports[static_cast<std::size_t>(a)];
      const RankReport& at_b = reports[static_cast<std::size_t>(b)];
      const bool same_node = at_a.node_key == at_b.node_key;
      if (same_node && transport != "verbs") {
        if (chosen.contains(a)) paths.push_back({a, b, kNoRail, kNoRail});
        continue;
      }
      if (transport == "shm" || !chosen.contains(a) || !chosen.contains(b)) continue;
      const auto num_a = static_cast<Rail>(at_a.rails.size()), num_b = static_cast<Rail>(at_b.rails.size());
      RailPairs pairs;
      if (topology) {
        pairs = connected_rails(*topology, a, b);
      } else {
        for (Rail rail = 0; rail < std::min(num_a, num_b); ++rail) pairs.insert({rail, rail});
      }
      for (Rail i = 0; all_nics && i < num_a; ++i)
        for (Rail j = 0; j < num_b; ++j) pairs.insert({i, j});
      for (const auto& [i, j] : pairs)
        if (i < num_a && j < num_b) paths.push_back({a, b, i, j});
    }
  }
  return paths;
}

std::vector<std::vector<ProbePath>> in_rounds(std::span<const ProbePath> paths, Rank num_ranks) {
  std::vector<std::vector<ProbePath>> rounds;
  std::map<std::pair<Rank, Rank>, std::size_t> round_of;
  // By rank: the rounds in which it has a partner.
  std::vector<std::set<std::size_t>> busy(static_cast<std::size_t>(num_ranks));
  for (const ProbePath& path : paths) {
    const auto [at, is_new] = round_of.try_emplace({path.a, path.b}, 0);
    if (is_new) {
      auto& busy_a = busy[static_cast<std::size_t>(path.a)];
      auto& busy_b = busy[static_cast<std::size_t>(path.b)];
      while (busy_a.contains(at->second) || busy_b.contains(at->second)) ++at->second;
      busy_a.insert(at->second);
      busy_b.insert(at->second);
    }
    if (rounds.size() <= at->second) rounds.resize(at->second + 1);
    rounds[at->second].push_back(path);
  }
  return rounds;
}

}  // namespace hips::doctor
