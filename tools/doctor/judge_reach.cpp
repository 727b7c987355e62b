#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lib/comm/agreement.hpp"
#include "tools/doctor/job.hpp"

namespace hips::doctor {
namespace {

/// One end of a way.
using End = std::pair<Rank, Rail>;

/// A way with the views of both its ends.
struct Verdict {
  Way way;
  bool ok = false;
  bool small_ok = false;
  std::string error;  ///< of the end that says most
};

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

/// The end of a way that is not `other`.
End far_end(const Way& way, End other) {
  return End{way.a, way.a_rail} == other ? End{way.b, way.b_rail} : End{way.a, way.a_rail};
}

std::vector<Verdict> verdicts_of(std::span<const Trial> trials) {
  std::map<std::tuple<Rank, Rank, Rail, Rail>, Verdict> by_way;
  for (const Trial& trial : trials) {
    const Way& way = trial.way;
    auto [at, is_new] =
        by_way.try_emplace({way.a, way.b, way.a_rail, way.b_rail}, Verdict{way, true, true, {}});
    Verdict& verdict = at->second;
    verdict.ok = verdict.ok && trial.ok();
    verdict.small_ok = verdict.small_ok && trial.small_ok;
    // "The other end has closed" is what the second one sees.
    const bool better = verdict.error.empty() || verdict.error.find("the other end") != std::string::npos ||
                        verdict.error.starts_with("no answer");
    if (!trial.error.empty() && better) verdict.error = trial.error;
  }
  std::vector<Verdict> verdicts;
  for (auto& [key, verdict] : by_way) verdicts.push_back(std::move(verdict));
  return verdicts;
}

/// Two software devices of one host: a way that never works.
bool is_quirk(std::span<const RankReport> reports, End from, End to) {
  const RankReport& a = report(reports, from.first);
  const RankReport& b = report(reports, to.first);
  const auto at_a = static_cast<std::size_t>(from.second), at_b = static_cast<std::size_t>(to.second);
  if (a.host_key != b.host_key || at_a >= a.rails.size() || at_b >= b.rails.size()) return false;
  return a.rails[at_a].software && b.rails[at_b].software && a.rails[at_a].name != b.rails[at_b].name;
}

/// The RoCE MTU of a way: that of the end with the smaller one; 0 where neither is known.
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

/// What to type at `from` about a way that loses large messages only.
std::string large_line(const std::string& host, const std::string& interface, const std::string& address,
                       std::int32_t mtu) {
  // An interface of the usual 1500 bytes has a RoCE MTU of 1024.
  constexpr std::int32_t kNoJumbo = 1024, kUsual = 1500, kMostRoce = 4096;
  constexpr std::int32_t kHeaders = 64;      ///< IPv4, UDP, base, address and immediate of RoCE v2, checksum
  constexpr std::int32_t kPingHeaders = 28;  ///< IPv4, ICMP
  if (mtu > 0 && mtu <= kNoJumbo)
    return fmt::format(
        "on {}: ping -M do -s {} -I {} {}; if it is lost, let all switch ports and tunnels pass {} bytes, "
        "else see where packets are dropped: ethtool -S {} | grep -E 'drop|discard'",
        host, kUsual - kPingHeaders, interface, address, kUsual, interface);
  // As large as a packet of ours, which the interface may have to be no larger than.
  return fmt::format(
      "on {}: ping -M do -s {} -I {} {}; if it is lost, give all switch ports jumbo frames, or ip link set "
      "{} mtu {} at all hosts",
      host, (mtu > 0 ? mtu : kMostRoce) + kHeaders - kPingHeaders, interface, address, interface, kUsual);
}

/// What to type at `from` about a way to `to`.
std::string way_line(std::span<const RankReport> reports, End from, End to, bool small_ok) {
  if (is_quirk(reports, from, to))
    return fmt::format(
        "HIPS_IB_HCA={}, the same at all ranks of {}: soft-RoCE devices of one host do not reach each "
        "other",
        report(reports, to.first).rails[static_cast<std::size_t>(to.second)].name,
        report(reports, to.first).host);
  const std::string interface = interface_of(reports, from), address = address_of(reports, to);
  const std::string& host = report(reports, from.first).host;
  if (small_ok) return large_line(host, interface, address, mtu_of(reports, from, to));
  return fmt::format(
      "on {}: ping -I {} {}; if it answers, let RoCE pass (iptables -I INPUT -p udp --dport 4791 -j "
      "ACCEPT), else look at the cable, the VLAN and ip route get {}",
      host, interface, address, address);
}

/// Ends all of whose ways are broken, where the far ends have others that work or this one has several: one
/// finding instead of one for each peer.
void judge_ends(std::span<const RankReport> reports, std::vector<Verdict>& verdicts, Findings& findings) {
  while (true) {
    std::map<End, std::pair<std::size_t, std::size_t>> counts;  // broken, all
    for (const Verdict& verdict : verdicts) {
      for (const End& end :
           {End{verdict.way.a, verdict.way.a_rail}, End{verdict.way.b, verdict.way.b_rail}}) {
        counts[end].first += verdict.ok ? 0 : 1;
        ++counts[end].second;
      }
    }
    const auto worst = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
      const auto weight = [](const auto& one) {
        return one.second.first == one.second.second ? one.second.first : std::size_t{0};
      };
      return weight(a) < weight(b);
    });
    if (worst == counts.end() || worst->second.first != worst->second.second || worst->second.first < 2)
      return;
    const End end = worst->first;
    std::vector<Rank> peers;
    const Verdict* example = nullptr;
    for (const Verdict& verdict : verdicts) {
      const Way& way = verdict.way;
      if (End{way.a, way.a_rail} != end && End{way.b, way.b_rail} != end) continue;
      peers.push_back(far_end(way, end).first);
      if (example == nullptr) example = &verdict;
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    const bool shm = end.second == kNoRail;
    findings.push_back(
        {Level::kError, end_text(reports, end),
         fmt::format("reaches nobody: {} tried; {}", comm::ranks_text(peers), example->error),
         shm ? "start all ranks in one container and as one user: docker run --pid=host --ipc=host"
             : way_line(reports, end, far_end(example->way, end), example->small_ok)});
    std::erase_if(verdicts, [end](const Verdict& verdict) {
      return End{verdict.way.a, verdict.way.a_rail} == end || End{verdict.way.b, verdict.way.b_rail} == end;
    });
  }
}

/// Pairs of ranks that have no way but TCP because one has no RDMA.
void judge_without_rails(std::span<const RankReport> reports, Findings& findings) {
  std::set<std::string> hosts;
  for (const RankReport& one : reports) hosts.insert(one.host_key);
  const bool needed = hosts.size() > 1 || reports.front().transport == "verbs";
  if (!needed || reports.front().transport == "tcp") return;
  // What was asked for is missing; else sockets carry the data, slower.
  const bool asked = reports.front().transport == "verbs";
  for (const RankReport& one : reports) {
    if (!one.rails.empty() && reports.front().transport != "shm") continue;
    // An error of the rank's own says why already; a warning (it has no device) becomes one among several
    // hosts.
    const auto cause = std::max_element(one.findings.begin(), one.findings.end(),
                                        [](const Finding& a, const Finding& b) { return a.level < b.level; });
    const bool known = cause != one.findings.end() && cause->level == Level::kError;
    const bool chosen = reports.front().transport == "shm";
    if (known && !chosen) continue;
    findings.push_back(
        {chosen || asked ? Level::kError : Level::kWarning, fmt::format("rank {} on {}", one.rank, one.host),
         chosen  ? "HIPS_TRANSPORT=shm reaches no other host"
         : asked ? fmt::format("no NIC to reach the others with: {}", one.no_rails)
                 : fmt::format("reaches the others by TCP only: {}", one.no_rails),
         chosen                                                           ? "unset HIPS_TRANSPORT"
         : cause != one.findings.end() && cause->level == Level::kWarning ? cause->fix
                                                                          : "rdma link; ip link"});
    if (chosen) return;
  }
}

}  // namespace

Findings judge_reach(std::span<const RankReport> reports, std::span<const Trial> trials,
                     std::size_t untried) {
  Findings findings;
  judge_without_rails(reports, findings);
  std::vector<Verdict> verdicts = verdicts_of(trials);
  const auto num_ok =
      std::count_if(verdicts.begin(), verdicts.end(), [](const Verdict& one) { return one.ok; });
  const std::size_t num_all = verdicts.size();
  judge_ends(reports, verdicts, findings);
  constexpr std::size_t kMostListed = 16;
  std::size_t num_listed = 0, num_broken = 0;
  for (const Verdict& verdict : verdicts) {
    if (verdict.ok) continue;
    ++num_broken;
    if (++num_listed > kMostListed) continue;
    const End a{verdict.way.a, verdict.way.a_rail}, b{verdict.way.b, verdict.way.b_rail};
    findings.push_back({Level::kError, end_text(reports, a),
                        fmt::format("does not reach {}: {}", end_text(reports, b), verdict.error),
                        verdict.way.shm() ? "start both ranks in one container and as one user"
                                          : way_line(reports, a, b, verdict.small_ok)});
  }
  if (num_broken > kMostListed)
    findings.push_back({Level::kError, "reach",
                        fmt::format("{} more ways are broken", num_broken - kMostListed),
                        "hips doctor --json lists all"});
  const bool has_topology = !reports.front().topology.empty();
  if (num_broken > 0 && !has_topology)
    findings.push_back(
        {Level::kNote, "reach",
         "without HIPS_TOPO every NIC should reach the NICs of its number; where the wiring is another "
         "one, name it",
         "mpirun -x HIPS_TOPO=bcube:3,1"});
  if (untried > 0)
    findings.push_back({Level::kWarning, "reach", fmt::format("no time was left for {} ways", untried),
                        "hips doctor --timeout 600"});
  if (num_all > 0 && num_ok == static_cast<std::ptrdiff_t>(num_all) && findings.empty())
    findings.push_back({Level::kOk, "reach",
                        num_all == 1 ? std::string("the only way works, small and large messages")
                                     : fmt::format("all {} ways work, small and large messages", num_all),
                        ""});
  return findings;
}

}  // namespace hips::doctor
