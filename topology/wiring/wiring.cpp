#include "topology/wiring/wiring.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hips/topology.hpp>

#include "lib/base/counted.hpp"
#include "topology/distances.hpp"
#include "topology/most_common.hpp"
#include "topology/rates.hpp"
#include "topology/spec.hpp"
#include "topology/wiring/between_servers.hpp"
#include "topology/wiring/given_rates.hpp"
#include "topology/wiring/kinds.hpp"
#include "topology/wiring/switches_above.hpp"

namespace hips::topology {
namespace {

using Kind = CabledNode::Kind;

class WiringMaker {
 public:
  WiringMaker(std::string_view name, Cabling cabling) : name_(name), cabling_(std::move(cabling)) {}

  Result<ServerWiring> make(DeadEnds dead_ends) {
    decide_kinds(name_, cabling_);
    for (CabledNode& node : cabling_.nodes) node.is_assumed = node.is_assumed && node.kind == Kind::kSwitch;
    wiring_.notes = std::move(cabling_.notes);
    drop_loops();
    given_ = give_rates(cabling_);
    set_rates();
    join_leaves();
    if (auto used = check_given(); !used) return fail(used.error());
    std::vector<bool> in_use(cabling_.nodes.size(), false);
    for (const Cable& cable : cabling_.cables) in_use[cable.a.node] = in_use[cable.b.node] = true;
    note_unconnected(in_use);
    if (auto added = add_nodes(in_use); !added) return fail(added.error());
    add_cables();
    if (dead_ends == DeadEnds::kLeaveOut) leave_out(find_dead_ends());
    keep_listed();
    if (auto joined = check_joined(); !joined) return fail(joined.error());
    return std::move(wiring_);
  }

 private:
  tl::unexpected<Status> bad(std::string_view problem) const {
    return fail(Code::kInvalidArgument, fmt::format("{}: {}", name_, problem));
  }

  [[nodiscard]] const CabledNode& node(std::size_t index) const { return cabling_.nodes[index]; }

  void note(std::string text) { wiring_.notes.push_back(fmt::format("{}: {}", name_, text)); }

  void drop_loops() {
    const auto loops =
        std::erase_if(cabling_.cables, [](const Cable& cable) { return cable.a.node == cable.b.node; });
    if (loops > 0)
      note(fmt::format("{} from a device to itself {} left out", counted(loops, "cable"),
                       loops == 1 ? "is" : "are"));
  }

  [[nodiscard]] bool at_server(const Cable& cable) const {
    return node(cable.a.node).kind == Kind::kServer || node(cable.b.node).kind == Kind::kServer;
  }

  /// Gives cables of unknown rate the most common one of servers' cables, or of those between switches, where more are known than
  /// not: a file may tell the odd ones only.
  void set_rates() {
    for (const bool servers : {true, false}) {
      MostCommon<double> known;
      std::size_t unknown = 0, all = 0;
      double before = 0;  ///< that was assumed when the file was made
      for (const Cable& cable : cabling_.cables) {
        if (at_server(cable) != servers) continue;
        ++all;
        if (cable.is_rate_told()) {
          known.add(cable.bandwidth_bytes_per_s);
        } else {
          ++unknown;
          before = std::max(before, cable.bandwidth_bytes_per_s);
        }
      }
      if (unknown == 0) continue;
      const double usual =
          2 * unknown > all ? kDefaultBandwidthBytesPerS : known.value_or(kDefaultBandwidthBytesPerS);
      const double rate = before > 0 ? before : usual;
      note(fmt::format("the rate of {} {} is not known; assuming {}", counted(unknown, "cable"),
                       servers ? (unknown == 1 ? "of a server" : "of servers") : "between switches",
                       rate_text(rate)));
      for (Cable& cable : cabling_.cables) {
        if (at_server(cable) != servers || cable.is_rate_told()) continue;
        cable.bandwidth_bytes_per_s = rate;
        cable.is_rate_assumed = true;
      }
    }
  }

  void join_leaves() {
    if (const auto told = std::ranges::count_if(cabling_.nodes, &CabledNode::is_assumed); told > 0)
      note(fmt::format("{} with {} cables {} assumed, as the file says",
                       told == 1 ? "a switch" : fmt::format("{} switches", told), told == 1 ? "its" : "their",
                       told == 1 ? "is" : "are"));
    if (!cabling_.heard_by_servers) return;
    const std::size_t num_assumed = add_switches_above(cabling_);
    if (num_assumed == 0) return;
    const Cable& last = cabling_.cables.back();
    if (cabling_.tier_rates.size() > 1 && cabling_.tier_rates[1] > 0) {
      for (Cable& cable : cabling_.cables)
        if (is_assumed(cable.b.node)) cable.bandwidth_bytes_per_s = cabling_.tier_rates[1];
      ++given_[1];
    }
    note(fmt::format(
        "servers do not hear what joins their switches; assuming {} above, each with a cable of {} to every one of "
        "them; add the output of lldpctl at the switches",
        num_assumed == 1 ? "a switch" : fmt::format("{} switches", num_assumed),
        rate_text(last.bandwidth_bytes_per_s)));
  }
  [[nodiscard]] Result<void> check_given() const {
    for (std::size_t tier = 0; tier < given_.size(); ++tier) {
      if (cabling_.tier_rates[tier] > 0 && given_[tier] == 0)
        return bad(
            fmt::format("--rate {}: the file tells the rates of all these cables, or has none; leave it out",
                        kCableTiers[tier]));
    }
    return {};
  }

  [[nodiscard]] bool is_assumed(std::size_t index) const { return node(index).is_assumed; }

  void note_unconnected(const std::vector<bool>& in_use) {
    std::size_t servers = 0, first = 0;
    for (std::size_t i = cabling_.nodes.size(); i-- > 0;) {
      if (in_use[i] || node(i).kind != Kind::kServer) continue;
      first = i;
      ++servers;
    }
    if (servers > 0)
      note(fmt::format("server {}{} has no cable: left out", in_quotes(node(first).name),
                       servers > 1 ? fmt::format(" (and {} more)", servers - 1) : ""));
  }

  Result<void> add_nodes(const std::vector<bool>& in_use) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < cabling_.nodes.size(); ++i)
      if (in_use[i]) order.push_back(i);
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      const bool a_switch = node(a).kind == Kind::kSwitch, b_switch = node(b).kind == Kind::kSwitch;
      if (a_switch != b_switch) return b_switch;
      if (is_assumed(a) != is_assumed(b)) return is_assumed(b);
      return natural_less(node(a).name, node(b).name);
    });
    number_of_.resize(cabling_.nodes.size());
    for (const std::size_t i : order) {
      number_of_[i] = wiring_.names.size();
      if (node(i).kind == Kind::kServer) ++wiring_.num_servers;
      if (!wiring_.names.empty() && wiring_.names.back() == node(i).name)
        return bad(
            fmt::format("{} is the name of two devices; names must be unique", in_quotes(node(i).name)));
      wiring_.names.push_back(node(i).name);
    }
    if (wiring_.num_servers > 0) return {};
    return bad(no_servers());
  }

  /// What is wrong where no server has a cable: the first servers have none, or the first nodes are none.
  [[nodiscard]] std::string no_servers() const {
    constexpr std::size_t kMostNamed = 4;
    const auto is_server = [](const CabledNode& node) { return node.kind == Kind::kServer; };
    const bool has_servers = std::ranges::any_of(cabling_.nodes, is_server);
    std::vector<std::string> names;
    std::size_t count = 0;
    for (const CabledNode& node : cabling_.nodes)
      if (is_server(node) == has_servers && ++count <= kMostNamed) names.push_back(in_quotes(node.name));
    if (count > kMostNamed) names.push_back(fmt::format("{} more", count - kMostNamed));
    return has_servers ? fmt::format("no server has a cable: {}; list their cables", fmt::join(names, ", "))
                       : fmt::format("none of the nodes is a server: {}; tell which are by --hosts REGEX",
                                     fmt::join(names, ", "));
  }

  /// Cables between the same two switches become one.
  void add_cables() {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> between;
    for (const Cable& cable : cabling_.cables) {
      WiredCable one{.a = number_of_[cable.a.node],
                     .b = number_of_[cable.b.node],
                     .a_port = cable.a.port,
                     .b_port = cable.b.port,
                     .bandwidth_bytes_per_s = cable.bandwidth_bytes_per_s,
                     .latency_ns = cable.latency_ns > 0 ? cable.latency_ns : kDefaultLatencyNs,
                     .up = cable.up};
      if (one.a > one.b) {
        std::swap(one.a, one.b);
        std::swap(one.a_port, one.b_port);
      }
      const std::size_t number = wiring_.cables.size();
      if (!wiring_.is_server(one.a)) {
        const auto [known, is_new] = between.try_emplace({one.a, one.b}, number);
        if (!is_new) {
          add_to(wiring_.cables[known->second], one);
          continue;
        }
      }
      wiring_.cables.push_back(std::move(one));
    }
    list_by_node();
  }

  static void add_to(WiredCable& all, const WiredCable& one) {
    all.a_port.clear();
    all.b_port.clear();
    if (all.up == one.up) {
      all.bandwidth_bytes_per_s += one.bandwidth_bytes_per_s;
    } else if (one.up) {
      all.bandwidth_bytes_per_s = one.bandwidth_bytes_per_s;
    }
    all.up = all.up || one.up;
  }

  void list_by_node() {
    wiring_.of.assign(wiring_.size(), {});
    for (std::size_t i = 0; i < wiring_.cables.size(); ++i) {
      wiring_.of[wiring_.cables[i].a].push_back(i);
      wiring_.of[wiring_.cables[i].b].push_back(i);
    }
  }

  /// Switches on no path between two servers, such as one for management, or a spine above one leaf. Those with servers of
  /// their own stay.
  std::vector<bool> find_dead_ends() {
    const auto on_path = between_servers(wiring_);
    const auto tiers = tiers_of(wiring_);
    std::vector<bool> dead(wiring_.size(), false);
    for (std::size_t node = wiring_.num_servers; node < wiring_.size(); ++node)
      dead[node] = !on_path[node] && tiers[node] > 0;
    return dead;
  }

  void leave_out(const std::vector<bool>& dead) {
    const auto count = std::ranges::count(dead, true);
    wiring_.num_left_out = static_cast<std::size_t>(count);
    if (count == 0) return;
    const auto first = static_cast<std::size_t>(std::ranges::find(dead, true) - dead.begin());
    note(fmt::format("switch {}{} is on no path between two servers: left out",
                     in_quotes(wiring_.names[first]),
                     count > 1 ? fmt::format(" (and {} more)", count - 1) : ""));
    std::vector<std::size_t> number(wiring_.size());
    std::vector<std::string> names;
    for (std::size_t node = 0; node < wiring_.size(); ++node) {
      number[node] = names.size();
      if (!dead[node]) names.push_back(std::move(wiring_.names[node]));
    }
    wiring_.names = std::move(names);
    std::erase_if(wiring_.cables, [&](const WiredCable& cable) { return dead[cable.a] || dead[cable.b]; });
    for (WiredCable& cable : wiring_.cables) {
      cable.a = number[cable.a];
      cable.b = number[cable.b];
    }
    list_by_node();
  }

  /// Of what the file lists, the nodes that are left, with the cables between them.
  void keep_listed() {
    std::unordered_map<std::string_view, std::size_t> by_name;
    std::unordered_set<std::string_view> assumed;
    for (const CabledNode& node : cabling_.nodes)
      if (node.is_assumed) assumed.insert(node.name);
    // They are the last ones.
    for (std::size_t node = 0; node < wiring_.size() && !assumed.contains(wiring_.names[node]); ++node) {
      by_name.emplace(wiring_.names[node], node);
      wiring_.listed.nodes.push_back(
          {.name = wiring_.names[node], .kind = wiring_.is_server(node) ? Kind::kServer : Kind::kSwitch});
    }
    wiring_.listed.has_uplinks = wiring_.listed.nodes.size() == wiring_.size();
    for (Cable& cable : cabling_.cables) {
      const auto a = by_name.find(node(cable.a.node).name), b = by_name.find(node(cable.b.node).name);
      if (a == by_name.end() || b == by_name.end()) continue;
      cable.a.node = a->second;
      cable.b.node = b->second;
      wiring_.listed.cables.push_back(std::move(cable));
    }
  }

  Result<void> check_joined() {
    std::vector<bool> reached(wiring_.size(), false);
    std::vector<std::size_t> next{0};
    reached[0] = true;
    while (!next.empty()) {
      const std::size_t node = next.back();
      next.pop_back();
      for (const std::size_t cable : wiring_.of[node]) {
        const std::size_t other = wiring_.across(cable, node);
        if (!reached[other]) next.push_back(other);
        reached[other] = true;
      }
    }
    for (std::size_t server = 0; server < wiring_.num_servers; ++server) {
      if (reached[server]) continue;
      return bad(
          fmt::format("no cables join server {} with {}; list the cables that do, or the servers of one "
                      "network only",
                      in_quotes(wiring_.names[server]), in_quotes(wiring_.names[0])));
    }
    return {};
  }

  std::string name_;
  Cabling cabling_;
  ServerWiring wiring_;
  std::vector<std::size_t> number_of_;  ///< by node of the cabling
  std::vector<std::size_t> given_;      ///< by tier, how many cables have a rate that was given
};

}  // namespace

Result<ServerWiring> wiring_of(std::string_view name, Cabling cabling, DeadEnds dead_ends) {
  return WiringMaker(name, std::move(cabling)).make(dead_ends);
}

std::vector<std::size_t> tiers_of(const ServerWiring& wiring) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const WiredCable& cable : wiring.cables) edges.emplace_back(cable.a, cable.b);
  std::vector<std::size_t> servers(wiring.num_servers);
  std::iota(servers.begin(), servers.end(), std::size_t{0});
  auto tiers = distances(wiring.size(), edges, std::move(servers));
  for (std::size_t& tier : tiers)
    if (tier > 0 && tier != SIZE_MAX) --tier;
  return tiers;
}

}  // namespace hips::topology
