#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/cost/bound.hpp"
#include "lib/cost/max_flow.hpp"
#include "lib/plan/fabric/tree_packing.hpp"
#include "topology/families/family.hpp"
#include "topology/link_rates.hpp"
#include "topology/rates.hpp"
#include "topology/tiers.hpp"

namespace hips::cost {
namespace {

/// Every set of up to this many levels is tried; fabrics have fewer.
constexpr std::size_t kMostLevels = 6;

/// The number of widths that are tried; fabrics with a few slow links have fewer.
constexpr std::ptrdiff_t kMostWidths = 16;

/// Costs of links come from packing trees, which takes longer than all flows of a large fabric.
constexpr std::int64_t kMostCostedNics = 128;

class GraphBound {
 public:
  explicit GraphBound(const Topology& topology)
      : topology_(topology), servers_(topology.num_servers()), flow_(topology.graph(), servers_) {}

  Bound make() {
    std::vector<std::int64_t> alone(static_cast<std::size_t>(servers_));
    for (std::int64_t server = 0; server < servers_; ++server)
      alone[static_cast<std::size_t>(server)] = server;
    add("single servers", alone);
    if (servers_ > 1) {
      add_joined();
      add_partitions_by_cost();
      add_levels();
      for (const topology::Tier& tier : topology::tiers(topology_)) {
        if (tier.servers_below == 0) continue;
        std::vector<std::int64_t> parts;
        for (std::int64_t server = 0; server < servers_; ++server)
          parts.push_back(topology_.whole_server(server) / tier.servers_below);
        add(tier.name, parts);
      }
    }
    for (std::size_t i = 1; i < bound_.cuts.size(); ++i) {
      if (bound_.cuts[i].seconds_per_byte > bound_.cut().seconds_per_byte) bound_.largest = i;
    }
    return std::move(bound_);
  }

 private:
  /// Adds the cut whose parts are the servers with equal numbers in `parts`.
  void add(std::string name, const std::vector<std::int64_t>& parts) {
    std::map<std::int64_t, std::vector<bool>> inside;
    for (std::size_t server = 0; server < parts.size(); ++server) {
      auto& mark = inside.try_emplace(parts[server], parts.size(), false).first->second;
      mark[server] = true;
    }
    // A cut that is known under another name is not added again.
    std::vector<std::int64_t> canonical;
    std::map<std::int64_t, std::int64_t> first;
    for (const std::int64_t part : parts)
      canonical.push_back(first.try_emplace(part, static_cast<std::int64_t>(first.size())).first->second);
    if (!bound_.cuts.empty() && (inside.size() < 2 || seen_.contains(canonical))) return;
    seen_.insert(std::move(canonical));
    double sum = 0;
    for (const auto& [part, mark] : inside) sum += inside.size() > 1 ? leaving(mark) : 0;
    add_cut(std::move(name), static_cast<std::int64_t>(inside.size()), sum);
  }

  /// Cached, because successively finer partitions share most of their parts.
  double leaving(const std::vector<bool>& mark) {
    const auto [known, is_new] = leaving_.try_emplace(mark, 0.0);
    if (is_new) known->second = flow_.leaving(mark);
    return known->second;
  }

  void add_cut(std::string name, std::int64_t parts, double sum) {
    Cut cut;
    cut.name = std::move(name);
    cut.num_parts = parts;
    cut.part_bandwidth_bytes_per_s = sum / static_cast<double>(std::max<std::int64_t>(parts, 1));
    if (parts > 1) {
      cut.seconds_per_byte =
          sum > 0 ? 2 * static_cast<double>(parts - 1) / sum : std::numeric_limits<double>::infinity();
    }
    bound_.cuts.push_back(std::move(cut));
  }

  /// Adds the narrowest of all cuts in two and, for each width that occurs, the parts inside which any two
  /// servers are joined by more than this width. If NICs are missing, badly joined servers become parts of
  /// their own, which gives a better bound than any cut in two.
  ///
  ///   <00>-+              BCube(3,1), the level 1 links of <00> and <02> down: both have one NIC left, and
  ///   <01>-+- level 0     all their data goes by NIC 0 of <01>: 2 * 2 / (1 + 1 + 1) instead of
  ///   <02>-+              2 * 8 / (7 * 2 + 1 + 1)
  void add_joined() {
    // Gusfield's tree: the least weight on the path between two servers is the flow between them.
    std::vector<std::int64_t> above(static_cast<std::size_t>(servers_), 0);
    std::vector<double> width(above.size(), 0.0);
    std::vector<bool> side, narrowest;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < above.size(); ++i) {
      width[i] = flow_.between(static_cast<std::int64_t>(i), above[i], side);
      for (std::size_t j = i + 1; j < above.size(); ++j) {
        if (side[j] && above[j] == above[i]) above[j] = static_cast<std::int64_t>(i);
      }
      if (width[i] >= least) continue;
      least = width[i];
      narrowest = side;
    }
    add_narrowest(least, narrowest);
    std::set<double> widths(width.begin() + 1, width.end());
    // Narrow ones first: they separate few servers from the rest.
    if (std::ssize(widths) > kMostWidths) widths.erase(std::next(widths.begin(), kMostWidths), widths.end());
    for (const double joined : widths) {
      // A server is in the part of the one above it if more than `joined` joins them. The server above has a
      // smaller number, so following them ends at server 0 or earlier.
      std::vector<std::int64_t> parts(above.size());
      for (std::size_t i = 0; i < above.size(); ++i) {
        std::size_t at = i;
        while (at != 0 && width[at] > joined) at = static_cast<std::size_t>(above[at]);
        parts[i] = static_cast<std::int64_t>(at);
      }
      const std::set<std::int64_t> distinct(parts.begin(), parts.end());
      if (distinct.size() > 2) {
        add(fmt::format("{} parts, joined inside by more than {}", distinct.size(),
                        topology::rate_text(joined)),
            parts);
      }
    }
  }

  /// Adds the partitions that limit packed trees. Cuts in two miss groups that share a few links, each of
  /// which is wide enough alone. In this BCube(3,1), <01> is behind <02>, and <22> has one link left, so
  /// {<01>, <02>}, {<22>} and the rest share three NICs: 2 * 2 / (1 + 1 + 1).
  ///
  ///   <02>-+
  ///   <12>-+- level 1
  ///   <22>-+
  void add_partitions_by_cost() {
    if (servers_ * topology_.num_rails > kMostCostedNics) return;
    for (const std::vector<std::int64_t>& parts : plan::partitions_by_cost(topology_)) {
      const std::set<std::int64_t> distinct(parts.begin(), parts.end());
      if (distinct.size() > 2)
        add(fmt::format("{} parts, joined inside by links with spare capacity", distinct.size()), parts);
    }
  }

  void add_narrowest(double least, const std::vector<bool>& narrowest) {
    auto inside = std::ranges::count(narrowest, true);
    const bool few_inside = 2 * inside <= servers_;
    if (!few_inside) inside = servers_ - inside;
    std::vector<std::string> few;
    for (std::int64_t server = 0; server < servers_ && inside <= 3; ++server) {
      if (narrowest[static_cast<std::size_t>(server)] == few_inside)
        few.push_back(topology::server_address(topology_, server));
    }
    add_cut(few.empty()
                ? fmt::format("{} servers and the other {}", inside, servers_ - inside)
                : fmt::format("server{} {} and the others", few.size() == 1 ? "" : "s", fmt::join(few, ", ")),
            2, 2 * least);
  }

  void add_levels() {
    std::vector<std::int32_t> network;
    for (std::int32_t l = 0; l < static_cast<std::int32_t>(topology_.levels.size()); ++l) {
      if (topology_.levels[static_cast<std::size_t>(l)].kind != LevelKind::kNode) network.push_back(l);
    }
    if (network.size() > kMostLevels || !topology::tiers(topology_).empty()) return;
    for (std::size_t set = 1; set + 1 < (std::size_t{1} << network.size()); ++set) {
      std::vector<std::int64_t> parts(static_cast<std::size_t>(servers_), 0);
      std::vector<std::string> names;
      for (std::size_t i = 0; i < network.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        const Level& level = topology_.levels[static_cast<std::size_t>(network[i])];
        names.push_back(level.name);
        for (std::int64_t server = 0; server < servers_; ++server) {
          std::int64_t& part = parts[static_cast<std::size_t>(server)];
          part = part * level.radix +
                 topology_.digit(static_cast<Rank>(server * topology_.ranks_per_server), network[i]);
        }
      }
      add(fmt::format("servers equal in {}", fmt::join(names, " and ")), parts);
    }
  }

  const Topology& topology_;
  std::int64_t servers_;
  MaxFlow flow_;
  Bound bound_;
  std::set<std::vector<std::int64_t>> seen_;
  std::map<std::vector<bool>, double> leaving_;
};

/// The bound by the NICs of all servers together, whatever is between them.
Bound bound_of_nics(const Topology& topology) {
  const auto tiers = topology::tiers(topology);
  const topology::LinkRates rates(topology, tiers);
  double sum = 0;
  for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
    for (Rail rail = 0; rail < topology.num_rails; ++rail) sum += rates.nic(server, rail);
  }
  Cut cut;
  cut.name = "single servers, by their NICs alone";
  cut.num_parts = topology.num_servers();
  cut.part_bandwidth_bytes_per_s = sum / static_cast<double>(cut.num_parts);
  if (sum > 0) cut.seconds_per_byte = 2 * static_cast<double>(cut.num_parts - 1) / sum;
  Bound bound;
  bound.cuts.push_back(std::move(cut));
  return bound;
}

}  // namespace

Bound graph_bound(const Topology& topology) {
  if (topology.num_links > kMostFlowLinks) return bound_of_nics(topology);
  return GraphBound(topology).make();
}

}  // namespace hips::cost
