#include "tools/discover/lldp_draft.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/discover/recognise.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/levels.hpp"
#include "topology/union_find.hpp"
#include "topology/wiring/recognise.hpp"

namespace hips::discover {
namespace {

using topology::CabledNode;
using topology::Cabling;
using topology::Draft;
using topology::DraftLine;
using topology::Segments;

/// The names of switches above leaves, whose uplinks servers do not hear, begin so.
constexpr std::string_view kSpine = "spine, not heard, ";
constexpr std::size_t kMostNamed = 8;

class LldpDrafter {
 public:
  LldpDrafter(topology::Observation& seen, Cabling cabling) : seen_(seen), cabling_(std::move(cabling)) {
    for (std::size_t server = 0; server < seen_.servers.size(); ++server)
      server_of_[seen_.servers[server].host] = server;
    find_ends();
    use_rates();
    join_leaves();
  }

  Result<Draft> draft() {
    auto cluster = recognised();
    if (!cluster) return fail(cluster.error());
    if (const auto placed = placement(*cluster)) return topology::draft_told(seen_, told(*cluster, *placed));
    return of_file(*std::move(cluster));
  }

 private:
  /// The server and NIC at each end of a cable; none at switches.
  struct Ends {
    std::optional<topology::NicId> a, b;
  };

  [[nodiscard]] std::optional<topology::NicId> nic_at(const topology::CableEnd& end) const {
    const auto server = server_of_.find(cabling_.nodes[end.node].name);
    if (server == server_of_.end()) return std::nullopt;
    const auto& nics = seen_.servers[server->second].nics;
    const auto nic = std::ranges::find(nics, end.port, &topology::SeenNic::name);
    if (nic == nics.end()) return std::nullopt;
    return topology::NicId{server->second, static_cast<std::size_t>(nic - nics.begin())};
  }

  void find_ends() {
    for (const topology::Cable& cable : cabling_.cables) ends_.push_back({nic_at(cable.a), nic_at(cable.b)});
  }

  /// What the system knows of a NIC counts more than what LLDP tells.
  void use_rates() {
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      topology::Cable& cable = cabling_.cables[i];
      double known = 0;
      for (const auto& end : {ends_[i].a, ends_[i].b}) {
        if (!end) continue;
        double& rate = seen_.servers[end->first].nics[end->second].bandwidth_bytes_per_s;
        if (rate <= 0 && cable.bandwidth_bytes_per_s > 0) {
          rate = cable.bandwidth_bytes_per_s;
          ++rates_told_;
        }
        rates_seen_ = rates_seen_ && rate > 0 && rates_told_ == 0;
        known = known > 0 && rate > 0 ? std::min(known, rate) : std::max(known, rate);
      }
      if (known > 0) cable.bandwidth_bytes_per_s = known;
    }
  }

  /// Do NICs of parts that no cable joins reach each other?
  bool reach_across(topology::UnionFind& joined, const std::map<topology::NicId, std::size_t>& node_at) {
    std::map<std::string, std::size_t> part_of;
    for (const auto& [nic, node] : node_at) {
      const std::string& subnet = seen_.servers[nic.first].nics[nic.second].subnet;
      if (subnet.empty() || !seen_.paths.empty()) continue;
      const auto [known, is_new] = part_of.try_emplace(subnet, joined.find(node));
      if (!is_new && known->second != joined.find(node)) return true;
    }
    return std::ranges::any_of(seen_.paths, [&](const topology::SeenPath& path) {
      const auto a = node_at.find({path.a, path.a_nic}), b = node_at.find({path.b, path.b_nic});
      return path.reached && a != node_at.end() && b != node_at.end() &&
             joined.find(a->second) != joined.find(b->second);
    });
  }

  void join_leaves() {
    topology::UnionFind joined(cabling_.nodes.size());
    std::map<topology::NicId, std::size_t> node_at;
    std::map<std::size_t, std::vector<double>> rates;  // of a switch's servers
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      const topology::Cable& cable = cabling_.cables[i];
      joined.join(cable.a.node, cable.b.node);
      if (ends_[i].a) node_at[*ends_[i].a] = cable.a.node;
      if (ends_[i].b) node_at[*ends_[i].b] = cable.b.node;
      if (ends_[i].a && !ends_[i].b) rates[cable.b.node].push_back(cable.bandwidth_bytes_per_s);
      if (ends_[i].b && !ends_[i].a) rates[cable.a.node].push_back(cable.bandwidth_bytes_per_s);
    }
    if (!reach_across(joined, node_at)) return;
    std::size_t most = 0;
    for (const auto& [leaf, own] : rates) most = std::max(most, own.size());
    for (std::size_t number = 0; number < most; ++number) {
      const std::size_t spine = cabling_.nodes.size();
      cabling_.nodes.push_back({fmt::format("{}{}", kSpine, number), CabledNode::Kind::kSwitch, 0});
      for (const auto& [leaf, own] : rates) {
        cabling_.cables.push_back({.a = {leaf, fmt::format("up{}", number)},
                                   .b = {spine, std::to_string(leaf)},
                                   .bandwidth_bytes_per_s = *std::ranges::min_element(own),
                                   .latency_ns = 0,
                                   .up = true,
                                   .line = 0});
        ends_.emplace_back();
      }
    }
    has_spine_ = true;
  }

  /// Networks of all servers beside another one are left out if only the others are a family.
  Result<topology::ClusterTopology> recognised() {
    auto whole = topology::topology_of("LLDP", cabling_);
    if (!whole || topology::topology_shape(whole->topology) != "graph") return whole;
    std::map<std::size_t, std::set<std::size_t>> servers;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i].a) servers[cabling_.cables[i].b.node].insert(ends_[i].a->first);
      if (ends_[i].b) servers[cabling_.cables[i].a.node].insert(ends_[i].b->first);
    }
    const auto spans = [&](std::size_t node) { return servers[node].size() == seen_.servers.size(); };
    Cabling rest = cabling_;
    std::erase_if(rest.cables,
                  [&](const topology::Cable& cable) { return spans(cable.a.node) || spans(cable.b.node); });
    if (rest.cables.empty() || rest.cables.size() == cabling_.cables.size()) return whole;
    auto part = topology::topology_of("LLDP", rest);
    if (!part || topology::topology_shape(part->topology) == "graph") return whole;
    std::erase_if(ends_, [&, i = std::size_t{0}](const Ends&) mutable {
      const topology::Cable& cable = cabling_.cables[i++];
      return spans(cable.a.node) || spans(cable.b.node);
    });
    cabling_ = std::move(rest);
    return part;
  }

  /// The NICs at each switch or cable, with servers in the order of `nodes`.
  [[nodiscard]] Segments segments(const std::vector<std::string>& nodes) const {
    std::map<std::size_t, std::size_t> row_of;
    Segments all;
    for (std::size_t row = 0; row < nodes.size(); ++row) {
      const std::size_t server = server_of_.at(nodes[row]);
      row_of[server] = row;
      all.of.emplace_back(seen_.servers[server].nics.size(), Segments::kNone);
    }
    const auto put = [&](const std::optional<topology::NicId>& nic, std::size_t segment) {
      if (nic && row_of.contains(nic->first))
        all.of[row_of[nic->first]][nic->second] = static_cast<std::int32_t>(segment);
    };
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      const topology::Cable& cable = cabling_.cables[i];
      const bool is_direct = ends_[i].a && ends_[i].b;
      put(ends_[i].a, is_direct ? cabling_.nodes.size() + i : has_spine_ ? 0 : cable.b.node);
      put(ends_[i].b, is_direct ? cabling_.nodes.size() + i : has_spine_ ? 0 : cable.a.node);
    }
    all.compact();
    return all;
  }

  /// Which NIC of which server is which of the family's; none for graphs and parts.
  std::optional<topology::Placement> placement(const topology::ClusterTopology& cluster) {
    const Topology& whole = cluster.topology;
    if (topology::topology_shape(whole) == "graph" || !whole.part.empty() ||
        cluster.nodes.size() != seen_.servers.size())
      return std::nullopt;
    Segments family = topology::segments_of(whole);
    for (const LinkOverride& link : whole.overrides)
      if (link.server >= 0 && !link.up)
        family.of[static_cast<std::size_t>(link.server)][static_cast<std::size_t>(link.rail)] =
            Segments::kNone;
    family.compact();
    const topology::Compressed seen = topology::compress(segments(cluster.nodes));
    auto placed = topology::place(family, seen.segments, topology::NicOrder::kAny);
    if (!placed) return std::nullopt;
    topology::restore(*placed, seen.nics);
    for (std::size_t& server : placed->server_of) server = server_of_.at(cluster.nodes[server]);
    return placed;
  }

  void add_remarks(const topology::ClusterTopology& cluster, std::vector<topology::Remark>& remarks) const {
    std::set<std::string> switches;
    for (const CabledNode& node : cabling_.nodes)
      if (!server_of_.contains(node.name) && !node.name.starts_with(kSpine)) switches.insert(node.name);
    std::vector<std::string> names(switches.begin(), switches.end());
    const std::size_t count = names.size();
    names.resize(std::min(count, kMostNamed));
    std::size_t cables = 0;
    for (const Ends& ends : ends_) cables += ends.a || ends.b ? 1 : 0;
    remarks.push_back(
        {DraftLine::kShape, 0, fmt::format("told by LLDP: the switches of {} NICs", cables), false});
    if (has_spine_) {
      remarks.push_back(
          {DraftLine::kSwitches, 0,
           "as many spines as a leaf has servers; servers do not hear what joins their switches", true});
    }
    if (count > 0) {
      remarks.push_back(
          {DraftLine::kSwitches, 0,
           fmt::format("told by LLDP: {}{}", fmt::join(names, ", "),
                       count > kMostNamed ? fmt::format(" and {} more", count - kMostNamed) : ""),
           false});
    }
    const auto first = static_cast<std::size_t>(topology::first_network_level(cluster.topology));
    for (std::size_t i = first; rates_seen_ && i < cluster.topology.levels.size(); ++i) {
      if (i == first || cluster.topology.levels[i].kind != LevelKind::kTree)
        remarks.push_back({DraftLine::kLevel, i - first, "seen: rate", false});
    }
    remarks.push_back({DraftLine::kDevices, 0, "seen", false});
    if (rates_told_ > 0)
      remarks.push_back(
          {DraftLine::kLevel, 0, fmt::format("told by LLDP: rate of {} NICs", rates_told_), false});
    if (cluster.topology.servers_relay)
      remarks.push_back({DraftLine::kRelay, 0, "not observed whether servers forward for others", true});
  }

  topology::ToldTopology told(const topology::ClusterTopology& cluster, topology::Placement placed) {
    topology::ToldTopology result{
        .topology = value_or_throw(topology::parse(topology::topology_shape(cluster.topology))),
        .placement = std::move(placed),
        .remarks = {},
        .notes = cluster.notes};
    add_remarks(cluster, result.remarks);
    return result;
  }

  /// Graphs and parts: the file as it is recognised, without names of devices.
  Result<Draft> of_file(topology::ClusterTopology cluster) {
    Draft draft;
    draft.notes = cluster.notes;
    draft.notes.emplace_back(
        "devices are not named: HIPS_IB_HCA (HIPS_SOCKET_IFNAME for interfaces) lists the NICs of each server in the order of "
        "this file");
    add_remarks(cluster, draft.remarks);
    draft.file = topology::file_of(std::move(cluster));
    std::int32_t least = seen_.servers.front().ranks, most = least;
    for (const topology::SeenServer& server : seen_.servers) {
      least = std::min(least, server.ranks);
      most = std::max(most, server.ranks);
    }
    if (most > 1)
      draft.remarks.push_back(
          {DraftLine::kRanks, 0,
           fmt::format("servers had {} to {} ranks; a file has one number for all", least, most), true});
    return draft;
  }

  topology::Observation& seen_;
  Cabling cabling_;
  std::map<std::string, std::size_t> server_of_;
  std::vector<Ends> ends_;  ///< by cable
  std::size_t rates_told_ = 0;
  bool rates_seen_ = true;  ///< of all NICs with a cable
  bool has_spine_ = false;
};

/// Why LLDP does not tell the wiring of all servers; none if it does.
std::optional<std::string> incomplete(const std::vector<topology::LldpHost>& hosts) {
  std::set<std::string> names;
  std::size_t silent = 0;
  for (const topology::LldpHost& host : hosts) {
    silent += host.neighbours.empty() ? 1 : 0;
    if (!names.insert(host.name).second) return fmt::format("two servers are called {}", host.name);
  }
  if (silent == 0) return std::nullopt;
  return fmt::format("{} of {} servers have heard no neighbour", silent, hosts.size());
}

}  // namespace

std::vector<topology::LldpHost> lldp_hosts(std::span<const RankView> views,
                                           std::span<const JobServer> servers) {
  std::vector<topology::LldpHost> hosts;
  for (const JobServer& server : servers) {
    const RankView& view = views[static_cast<std::size_t>(server.leader())];
    hosts.push_back({view.host, view.neighbours});
  }
  return hosts;
}

Result<Draft> draft_with_lldp(topology::Observation seen, std::vector<topology::LldpHost> hosts) {
  const bool heard = std::ranges::any_of(hosts, [](const auto& host) { return !host.neighbours.empty(); });
  // A server alone has no topology to find.
  if (!heard || hosts.size() < 2) return topology::draft_topology(seen);
  std::optional<std::string> problem = incomplete(hosts);
  if (!problem) {
    auto cabling = topology::cables_of("LLDP", std::move(hosts));
    auto draft =
        cabling ? LldpDrafter(seen, *std::move(cabling)).draft() : Result<Draft>(fail(cabling.error()));
    if (draft) return draft;
    problem = draft.error().message;
  }
  auto draft = topology::draft_topology(seen);
  if (draft) draft->notes.push_back(fmt::format("LLDP is not used: {}", *problem));
  return draft;
}

}  // namespace hips::discover
