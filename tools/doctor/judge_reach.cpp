#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "lib/comm/setup/agreement.hpp"
#include "tools/doctor/job.hpp"

namespace hips::doctor {
namespace {

/// One end of a path.
using End = std::pair<Rank, Rail>;

/// The result of a path, from the trials of both ends.
struct PathResult {
  ProbePath path;
  bool ok = false;
  bool small_ok = false;
  std::string error;  ///< the more specific one of both ends
};

End a_end(const ProbePath& path) {
  return {path.a, path.a_rail};
}
End b_end(const ProbePath& path) {
  return {path.b, path.b_rail};
}
bool has_end(const ProbePath& path, End end) {
  return a_end(path) == end || b_end(path) == end;
}

const RankReport& report(std::span<const RankReport> reports, Rank rank) {
  return reports[static_cast<std::size_t>(rank)];
}

std::string end_text(std::span<const RankReport> reports, End end) {
  const RankReport& one = report(reports, end.first);
  if (end.second == kNoRail) return fmt::format("rank {} on {}", end.first, one.host);
  const auto rail = static_cast<std::size_t>(end.second);
  if (rail >= one.rails.size()) return fmt::format("rank {} on {}, NIC {}", end.first, one.host, end.second);
  return fmt::format("rank {} on {}, {} ({})", end.first, one.host, one.rails[rail].name,
                     one.rails[rail].address);
}

std::string interface_of(std::span<const RankReport> reports, End end) {
  const auto& rails = report(reports, end.first).rails;
  const auto rail = static_cast<std::size_t>(end.second);
  return rail < rails.size() && !rails[rail].interface.empty() ? rails[rail].interface : "IF";
}

std::string address_of(std::span<const RankReport> reports, End end) {
  const auto& rails = report(reports, end.first).rails;
  const auto rail = static_cast<std::size_t>(end.second);
  return rail < rails.size() ? rails[rail].address : "ADDRESS";
}

/// The end of a path that is not `end`.
End far_end(const ProbePath& path, End end) {
  return a_end(path) == end ? b_end(path) : a_end(path);
}

std::vector<PathResult> results_of(std::span<const Trial> trials) {
  std::map<std::tuple<Rank, Rank, Rail, Rail>, PathResult> by_path;
  for (const Trial& trial : trials) {
    const ProbePath& path = trial.path;
    auto [at, is_new] =
        by_path.try_emplace({path.a, path.b, path.a_rail, path.b_rail}, PathResult{path, true, true, {}});
    PathResult& result = at->second;
    result.ok = result.ok && trial.ok();
    result.small_ok = result.small_ok && trial.small_ok;
    // "The other end has closed" is a consequence of the error at that end.
    const bool vague = result.error.empty() || result.error.find("the other end") != std::string::npos ||
                       result.error.starts_with("no answer");
    if (!trial.error.empty() && vague) result.error = trial.error;
  }
  std::vector<PathResult> results;
  for (auto& [key, result] : by_path) results.push_back(std::move(result));
  return results;
}

/// Are these different software devices of one node? They never reach each other.
bool are_local_software_devices(std::span<const RankReport> reports, End from, End to) {
  const RankReport& a = report(reports, from.first);
  const RankReport& b = report(reports, to.first);
  const auto at_a = static_cast<std::size_t>(from.second), at_b = static_cast<std::size_t>(to.second);
  if (a.node_key != b.node_key || at_a >= a.rails.size() || at_b >= b.rails.size()) return false;
  return a.rails[at_a].software && b.rails[at_b].software && a.rails[at_a].name != b.rails[at_b].name;
}

/// The RoCE MTU of a path: the smaller one of both ends; 0 if neither is known.
std::int32_t mtu_of(std::span<const RankReport> reports, End from, End to) {
  std::int32_t least = 0;
  for (const End& end : {from, to}) {
    const auto& rails = report(reports, end.first).rails;
    const auto rail = static_cast<std::size_t>(end.second);
    if (rail < rails.size() && rails[rail].mtu > 0 && (least == 0 || rails[rail].mtu < least))
      least = rails[rail].mtu;
  }
  return least;
}

/// The command to type on `host` about a path that loses only large messages.
std::string large_line(const std::string& host, const std::string& interface, const std::string& address,
                       std::int32_t mtu) {
  // An interface of the usual 1500 bytes has a RoCE MTU of 1024.
  constexpr std::int32_t kNoJumbo = 1024, kUsual = 1500, kMostRoce = 4096;
  constexpr std::int32_t kHeaders = 64;      ///< IPv4, UDP, base, address and immediate of RoCE v2, checksum
  constexpr std::int32_t kPingHeaders = 28;  ///< IPv4, ICMP
  if (mtu > 0 && mtu <= kNoJumbo)
    return fmt::format(
        "on {}: ping -M do -s {} -I {} {}; if it gets no answer, let all switch ports and tunnels pass {} "
        "bytes, "
        "else find where packets are dropped: ethtool -S {} | grep -E 'drop|discard'",
        host, kUsual - kPingHeaders, interface, address, kUsual, interface);
  // As large as a RoCE packet of this MTU.
  return fmt::format(
      "on {}: ping -M do -s {} -I {} {}; if it gets no answer, enable jumbo frames at all switch ports, or "
      "ip "
      "link set {} mtu {} on all nodes",
      host, (mtu > 0 ? mtu : kMostRoce) + kHeaders - kPingHeaders, interface, address, interface, kUsual);
}

/// The command to type at `from` about a broken path to `to`.
std::string path_line(std::span<const RankReport> reports, End from, End to, bool small_ok) {
  if (are_local_software_devices(reports, from, to))
    return fmt::format(
        "HIPS_IB_HCA={} on all ranks of {}: soft-RoCE devices of one node do not reach each other",
        report(reports, to.first).rails[static_cast<std::size_t>(to.second)].name,
        report(reports, to.first).host);
  const std::string interface = interface_of(reports, from), address = address_of(reports, to);
  const std::string& host = report(reports, from.first).host;
  if (small_ok) return large_line(host, interface, address, mtu_of(reports, from, to));
  return fmt::format(
      "on {}: ping -I {} {}; if it gets an answer, let RoCE pass (iptables -I INPUT -p udp --dport 4791 -j "
      "ACCEPT), else check the cable, the VLAN and ip route get {}",
      host, interface, address, address);
}

/// The end with the most paths, at least two, all of which are broken.
std::optional<End> worst_end(std::span<const PathResult> results) {
  std::map<End, std::pair<std::size_t, std::size_t>> counts;  // broken, all
  for (const PathResult& result : results) {
    for (const End& end : {a_end(result.path), b_end(result.path)}) {
      counts[end].first += result.ok ? 0 : 1;
      ++counts[end].second;
    }
  }
  std::optional<End> worst;
  std::size_t most = 1;
  for (const auto& [end, count] : counts) {
    const auto [broken, all] = count;
    if (broken != all || broken <= most) continue;
    most = broken;
    worst = end;
  }
  return worst;
}

/// Reports each end all of whose paths are broken with one finding instead of one for each peer, and removes
/// its paths from `results`.
void judge_ends(std::span<const RankReport> reports, std::vector<PathResult>& results, Findings& findings) {
  while (const std::optional<End> worst = worst_end(results)) {
    const End end = *worst;
    std::vector<Rank> peers;
    const PathResult* example = nullptr;
    for (const PathResult& result : results) {
      if (!has_end(result.path, end)) continue;
      peers.push_back(far_end(result.path, end).first);
      if (example == nullptr) example = &result;
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    const bool shm = end.second == kNoRail;
    findings.push_back(
        {FindingLevel::kError, end_text(reports, end),
         fmt::format("reaches no other rank: {} tried; {}", comm::ranks_text(peers), example->error),
         shm ? "start all ranks in one container and as one user: docker run --pid=host --ipc=host"
             : path_line(reports, end, far_end(example->path, end), example->small_ok)});
    std::erase_if(results, [end](const PathResult& result) { return has_end(result.path, end); });
  }
}

/// Ranks that reach other nodes only by TCP, or not at all, because they have no RDMA.
void judge_without_rails(std::span<const RankReport> reports, Findings& findings) {
  std::set<std::string> nodes;
  for (const RankReport& one : reports) nodes.insert(one.node_key);
  const bool needed = nodes.size() > 1 || reports.front().transport == "verbs";
  if (!needed || reports.front().transport == "tcp") return;
  // Without HIPS_TRANSPORT=verbs sockets are used instead, which is slower.
  const bool asked = reports.front().transport == "verbs";
  for (const RankReport& one : reports) {
    if (!one.rails.empty() && reports.front().transport != "shm") continue;
    // An error of the rank's own already tells the cause; a warning (no device) is repeated for several
    // nodes.
    const auto cause =
        std::max_element(one.findings.begin(), one.findings.end(),
                         [](const DoctorFinding& a, const DoctorFinding& b) { return a.level < b.level; });
    const bool known = cause != one.findings.end() && cause->level == FindingLevel::kError;
    const bool chosen = reports.front().transport == "shm";
    if (known && !chosen) continue;
    findings.push_back({chosen || asked ? FindingLevel::kError : FindingLevel::kWarning,
                        fmt::format("rank {} on {}", one.rank, one.host),
                        chosen  ? "HIPS_TRANSPORT=shm reaches no other node"
                        : asked ? fmt::format("no NIC to reach other ranks: {}", one.no_rails)
                                : fmt::format("reaches other nodes only by TCP: {}", one.no_rails),
                        chosen ? "unset HIPS_TRANSPORT"
                        : cause != one.findings.end() && cause->level == FindingLevel::kWarning
                            ? cause->fix
                            : "rdma link; ip link"});
    if (chosen) return;
  }
}

}  // namespace

Findings judge_reach(std::span<const RankReport> reports, std::span<const Trial> trials,
                     std::size_t untried) {
  Findings findings;
  judge_without_rails(reports, findings);
  std::vector<PathResult> results = results_of(trials);
  const auto num_ok =
      std::count_if(results.begin(), results.end(), [](const PathResult& one) { return one.ok; });
  const std::size_t num_all = results.size();
  judge_ends(reports, results, findings);
  constexpr std::size_t kMostListed = 16;
  std::size_t num_broken = 0;
  for (const PathResult& result : results) {
    if (result.ok || ++num_broken > kMostListed) continue;
    const End a = a_end(result.path), b = b_end(result.path);
    findings.push_back({FindingLevel::kError, end_text(reports, a),
                        fmt::format("does not reach {}: {}", end_text(reports, b), result.error),
                        result.path.shm() ? "start both ranks in one container and as one user"
                                          : path_line(reports, a, b, result.small_ok)});
  }
  if (num_broken > kMostListed)
    findings.push_back({FindingLevel::kError, "reach",
                        fmt::format("{} more paths are broken", num_broken - kMostListed),
                        "hips doctor --json lists all"});
  const bool has_topology = !reports.front().topology.empty();
  if (num_broken > 0 && !has_topology)
    findings.push_back(
        {FindingLevel::kNote, "reach",
         "without HIPS_TOPO every NIC should reach the NICs of the same number; if the wiring is different, "
         "name it",
         "mpirun -x HIPS_TOPO=bcube:3,1"});
  if (untried > 0)
    findings.push_back({FindingLevel::kWarning, "reach",
                        fmt::format("no time was left for {} paths", untried), "hips doctor --timeout 600"});
  if (num_all > 0 && num_ok == static_cast<std::ptrdiff_t>(num_all) && findings.empty())
    findings.push_back({FindingLevel::kOk, "reach",
                        num_all == 1 ? std::string("the only path works for small and large messages")
                                     : fmt::format("all {} paths work for small and large messages", num_all),
                        ""});
  return findings;
}

}  // namespace hips::doctor
