#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include <hips/topology.hpp>

#include "lib/comm/setup/agreement.hpp"
#include "tools/doctor/job.hpp"
#include "tools/doctor/judge.hpp"

namespace hips::doctor {
namespace {

using comm::ranks_text;

/// A property that should be equal on all ranks.
struct Property {
  const char* name;
  FindingLevel level;
  std::function<std::string(const RankReport&)> value;
  /// The command that gives rank `other` the common value.
  std::function<std::string(const RankReport& other, const std::string& common)> fix;
  /// Where more is better: the ranks that have less than the best one are named, however many they are.
  std::function<double(const RankReport&)> worth{};
};

std::string or_unset(const std::string& text) {
  return text.empty() ? "unset" : text;
}

std::string set_variable(const char* name, const std::string& value) {
  return value == "unset" ? fmt::format("unset {} on all ranks", name)
                          : fmt::format("mpirun -x {}={}, or export it in the job's script", name, value);
}

std::string locked_text(const RankReport& report) {
  return report.locked_bytes ? size_text(*report.locked_bytes) : "unlimited";
}

std::string rail_facts(const RankReport& report, std::size_t rail, bool mtu) {
  if (rail >= report.rails.size()) return "";
  const RailReport& one = report.rails[rail];
  if (mtu) return one.mtu > 0 ? std::to_string(one.mtu) : "";
  return one.kind;
}

/// Names the ranks whose value is not the best one, or not the most common one where none is better; of two that are equally
/// common, that of the first rank counts. Ranks with an empty value are ignored.
void compare(std::span<const RankReport> reports, const Property& property, Findings& findings) {
  std::map<std::string, std::vector<Rank>> ranks_by_value;
  for (const RankReport& report : reports)
    if (std::string value = property.value(report); !value.empty())
      ranks_by_value[value].push_back(report.rank);
  if (ranks_by_value.size() < 2) return;
  const auto merit = [&](const std::vector<Rank>& ranks) {
    const RankReport& first = reports[static_cast<std::size_t>(ranks.front())];
    return std::tuple(property.worth ? property.worth(first) : 0, ranks.size(), -ranks.front());
  };
  const auto common =
      std::ranges::max_element(ranks_by_value, {}, [&](const auto& one) { return merit(one.second); });
  for (const auto& [value, ranks] : ranks_by_value) {
    if (value == common->first) continue;
    const RankReport& other = reports[static_cast<std::size_t>(ranks.front())];
    findings.push_back({property.level, fmt::format("{} on {}", ranks_text(ranks), other.host),
                        fmt::format("{}: {}, but {} of {} ranks have {}", property.name, value,
                                    common->second.size(), reports.size(), common->first),
                        property.fix(other, common->first)});
  }
}

/// The MTU that an interface needs for a RoCE MTU: a usual one, else one with room for headers.
std::string interface_mtu(const std::string& roce) {
  if (roce == "4096") return "9000";
  if (roce == "1024") return "1500";
  // Drivers subtract up to 96 bytes for headers, and the next RoCE MTU is twice as large.
  return roce == "2048" ? "2200" : roce == "512" ? "640" : "400";
}

void compare_rails(std::span<const RankReport> reports, Findings& findings) {
  std::size_t most = 0;
  for (const RankReport& report : reports) most = std::max(most, report.rails.size());
  for (std::size_t rail = 0; rail < most; ++rail) {
    const auto interface = [rail](const RankReport& other) {
      return other.rails[rail].interface.empty() ? std::string("IF") : other.rails[rail].interface;
    };
    const std::string mtu = fmt::format("RoCE MTU of NIC {}", rail),
                      kind = fmt::format("address of NIC {}", rail);
    compare(reports,
            {mtu.c_str(), FindingLevel::kWarning,
             [rail](const RankReport& one) { return rail_facts(one, rail, true); },
             [&](const RankReport& other, const std::string& common) {
               return fmt::format("ip link set {} mtu {}, on {}", interface(other), interface_mtu(common),
                                  other.host);
             },
             [rail](const RankReport& one) { return static_cast<double>(one.rails[rail].mtu); }},
            findings);
    compare(reports,
            {kind.c_str(), FindingLevel::kError,
             [rail](const RankReport& one) { return rail_facts(one, rail, false); },
             [&](const RankReport&, const std::string&) {
               return std::string(
                   "unset HIPS_IB_GID_INDEX, and give all NICs an IPv4 address: ip addr add "
                   "10.0.0.1/24 dev IF");
             }},
            findings);
  }
}

void judge_oversubscription(std::span<const RankReport> reports, Findings& findings) {
  std::map<std::string, std::vector<const RankReport*>> by_node;
  for (const RankReport& report : reports) by_node[report.node_key].push_back(&report);
  for (const auto& [key, ranks] : by_node) {
    const RankReport& first = *ranks.front();
    const auto num_ranks = static_cast<std::int32_t>(ranks.size());
    const bool one_cpu = num_ranks > 1 && first.num_online_cpus >= num_ranks &&
                         std::all_of(ranks.begin(), ranks.end(), [&](const RankReport* one) {
                           return one->cpus == first.cpus && count_cpus(one->cpus) < num_ranks;
                         });
    if (one_cpu)
      findings.push_back({FindingLevel::kWarning, first.host,
                          fmt::format("all {} ranks are bound to CPUs {}", num_ranks, first.cpus),
                          "mpirun --bind-to core"});
    if (first.num_online_cpus > 0 && num_ranks > first.num_online_cpus)
      findings.push_back(
          {FindingLevel::kNote, first.host,
           fmt::format("oversubscribed: {} ranks share {} CPUs", num_ranks, first.num_online_cpus),
           fmt::format("mpirun --map-by ppr:{}:node", first.num_online_cpus)});
  }
}

void judge_topology(std::span<const RankReport> reports, Findings& findings) {
  const std::string& spec = reports.front().topology;
  if (spec.empty()) return;
  try {
    const Topology topology = parse_topology(spec);
    const auto size = static_cast<Rank>(reports.size());
    if (topology.num_ranks() != size)
      findings.push_back(
          {FindingLevel::kError, "HIPS_TOPO",
           fmt::format("{} has {} ranks, but {} were started", spec, topology.num_ranks(), size),
           fmt::format("mpirun -n {}, or another HIPS_TOPO", topology.num_ranks())});
    std::set<std::string> nodes;
    for (const RankReport& report : reports) nodes.insert(report.node_key);
    for (const RankReport& report : reports) {
      const auto has = static_cast<Rail>(report.rails.size());
      if (nodes.size() > 1 && has > 0 && has < topology.num_rails)
        findings.push_back(
            {FindingLevel::kWarning, fmt::format("rank {} on {}", report.rank, report.host),
             fmt::format("{} NICs for the {} rails of {}", has, topology.num_rails, spec),
             "rdma link; ip link set IF up; or name a port for each rail: HIPS_IB_HCA=a:1,b:1"});
    }
  } catch (const Error& error) {
    findings.push_back(
        {FindingLevel::kError, "HIPS_TOPO", error.status().message, "hips topo --help lists the topologies"});
  }
}

}  // namespace

Findings compare_ranks(std::span<const RankReport> reports) {
  Findings findings;
  const auto reinstall = [](const RankReport& other, const std::string& common) {
    return fmt::format("install HiPS {} on {}", common, other.host);
  };
  compare(
      reports,
      {"HiPS version", FindingLevel::kError, [](const RankReport& one) { return one.version; }, reinstall},
      findings);
  compare(
      reports,
      {"HIPS_TRANSPORT", FindingLevel::kError, [](const RankReport& one) { return one.transport; },
       [](const RankReport&, const std::string& common) { return set_variable("HIPS_TRANSPORT", common); }},
      findings);
  compare(reports,
          {"HIPS_TOPO", FindingLevel::kError,
           [](const RankReport& one) { return or_unset(one.wiring.empty() ? one.topology : one.wiring); },
           [](const RankReport& other, const std::string& common) {
             return names_file(other.topology) && !other.wiring.empty()
                        ? fmt::format("copy the common file to {} on {}", other.topology, other.host)
                        : set_variable("HIPS_TOPO", common);
           }},
          findings);
  compare(reports,
          {"locked memory", FindingLevel::kWarning, locked_text,
           [](const RankReport& other, const std::string&) {
             return fmt::format("ulimit -l unlimited on {}, or in its /etc/security/limits.d/hips.conf",
                                other.host);
           },
           [](const RankReport& one) {
             return one.locked_bytes ? static_cast<double>(*one.locked_bytes)
                                     : std::numeric_limits<double>::infinity();
           }},
          findings);
  compare(reports,
          {"number of NICs", FindingLevel::kWarning,
           [](const RankReport& one) {
             return one.rails.empty() ? std::string() : std::to_string(one.rails.size());
           },
           [](const RankReport& other, const std::string&) {
             return fmt::format("check rdma link on {}; ip link set IF up; name the ports in HIPS_IB_HCA",
                                other.host);
           },
           [](const RankReport& one) { return static_cast<double>(one.rails.size()); }},
          findings);
  compare_rails(reports, findings);
  judge_topology(reports, findings);
  judge_oversubscription(reports, findings);
  return findings;
}

Findings merge_findings(std::span<const RankReport> reports) {
  Findings merged;
  std::vector<std::vector<Rank>> ranks;
  for (const RankReport& report : reports) {
    for (const DoctorFinding& finding : report.findings) {
      if (finding.level < FindingLevel::kWarning && report.rank != reports.front().rank) continue;
      const auto at = std::find(merged.begin(), merged.end(), finding);
      if (at == merged.end()) {
        merged.push_back(finding);
        ranks.push_back({report.rank});
      } else {
        ranks[static_cast<std::size_t>(at - merged.begin())].push_back(report.rank);
      }
    }
  }
  for (std::size_t i = 0; i < merged.size(); ++i) {
    if (ranks[i].size() == reports.size() || merged[i].level < FindingLevel::kWarning) continue;
    std::set<std::string> hosts;
    for (const Rank rank : ranks[i]) hosts.insert(reports[static_cast<std::size_t>(rank)].host);
    merged[i].where = fmt::format("{} on {}: {}", ranks_text(ranks[i]),
                                  hosts.size() == 1 ? *hosts.begin() : fmt::format("{} nodes", hosts.size()),
                                  merged[i].where);
  }
  return merged;
}

}  // namespace hips::doctor
