#include "topology/formats/file_links.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "lib/base/counted.hpp"
#include "topology/cables.hpp"
#include "topology/families/family.hpp"
#include "topology/formats/told_wiring_file.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// The largest graph that is made to find the names of switches.
constexpr std::int64_t kMostGraphLinks = 200'000;

constexpr auto kLinkKeys = std::to_array<std::string_view>(
    {"server", "nic", "switch", "to", "to-nic", "switches", "rate", "state", "cables"});

using SwitchPair = std::pair<std::string, std::string>;

class LinkReader {
 public:
  LinkReader(const FileValues& values, const std::unordered_map<std::string, std::int64_t>& by_name,
             TopologyFile& file)
      : values_(values), by_name_(by_name), file_(file), topology_(file.topology) {}

  Result<void> read(const YamlNode& links) {
    if (auto list = values_.sequence(links); !list) return list;
    for (const YamlNode& node : links.items) {
      if (auto done = read_link(node); !done) return done;
    }
    const auto order = [](const LinkOverride& link) {
      return std::tuple(link.server < 0, link.server, link.rail, link.lower, link.upper);
    };
    std::ranges::sort(topology_.overrides, {}, order);
    return {};
  }

 private:
  Result<void> read_link(const YamlNode& node) {
    if (auto known = values_.keys(node, "a link", kLinkKeys); !known) return known;
    const YamlNode* server = FileValues::find(node, "server");
    const YamlNode* switches = FileValues::find(node, "switches");
    if ((server != nullptr) == (switches != nullptr)) {
      return values_.bad(node,
                         "a link needs one of server and switches; write {server: 3, nic: 1, rate: 10Gb} or "
                         "{switches: [leaf 0, spine 1], state: down}");
    }
    LinkOverride link;
    double nominal = 0;
    auto found = server != nullptr ? read_server_link(node, *server, link, nominal)
                                   : read_switch_link(node, *switches, link, nominal);
    if (!found) return found;
    const LinkKey key(link.server, link.rail, link.lower, link.upper);
    if (!seen_.insert(key).second) return values_.bad(node, "the link is listed twice; list it once");
    auto state = read_link_state(values_, node, nominal);
    if (!state) return fail(state.error());
    link.bandwidth_bytes_per_s = state->bandwidth_bytes_per_s;
    link.up = state->up;
    if (leaves_the_part(link)) return {};
    if (const YamlNode* cables = FileValues::find(node, "cables"); cables != nullptr && server != nullptr)
      return values_.bad(*cables, "cables is for links between switches; leave it out");
    if (state->cables) file_.told.cables.emplace(key, *std::move(state->cables));
    if (!link.up || link.bandwidth_bytes_per_s != nominal) topology_.overrides.push_back(std::move(link));
    return {};
  }

  /// Does the cable lead to a server that is not in use? Then it is not a cable of the part.
  [[nodiscard]] bool leaves_the_part(const LinkOverride& link) const {
    if (link.server < 0) return false;
    const auto far = other_end(topology_, link.server, link.rail);
    return far && far->first < 0;
  }

  /// The level that determines the rate of a NIC; null for the server of a topology without levels.
  [[nodiscard]] const Level* level_of(Rail rail) const {
    for (const Level& level : topology_.levels) {
      if (std::ranges::find(level.rails, rail) != level.rails.end()) return &level;
    }
    return nullptr;
  }

  Result<Rail> read_nic(const YamlNode& node, std::int64_t server) {
    const auto text = values_.text(node);
    if (!text) return fail(text.error());
    for (Rail rail = 0; rail < topology_.num_rails; ++rail) {
      if (!text->empty() && file_.device(server, rail) == *text) return rail;
    }
    const auto number = values_.number(node, 0, topology_.num_rails - 1);
    if (!number) return fail(number.error());
    return static_cast<Rail>(*number);
  }

  Result<void> read_server_link(const YamlNode& node, const YamlNode& server_node, LinkOverride& link,
                                double& nominal) {
    const auto server = values_.server(server_node, file_, by_name_);
    if (!server) return fail(server.error());
    const YamlNode* nic = FileValues::find(node, "nic");
    if (nic == nullptr)
      return values_.bad(node, "the link's nic is missing; write {server: 3, nic: 1, rate: 10Gb}");
    const auto rail = read_nic(*nic, *server);
    if (!rail) return fail(rail.error());
    const Level* level = level_of(*rail);
    nominal = level == nullptr ? kDefaultBandwidthBytesPerS : level->bandwidth_bytes_per_s;
    link.server = *server;
    link.rail = *rail;
    const bool cable = level != nullptr && is_of_cables(*level);
    const auto far = other_end(topology_, *server, *rail);
    if (cable && !far) {
      return values_.bad(
          *nic, fmt::format("NIC {} of server {} is not connected in {}: the server is at the edge", *rail,
                            in_quotes(server_node.scalar), topology_.spec));
    }
    if (const YamlNode* name = FileValues::find(node, "switch")) {
      const std::string of_graph =
          entry_of(topology_.family).switch_name(topology_, topology_.whole_server(*server), *rail);
      const std::string right = name_in_file(of_graph);
      const auto text = values_.text(*name);
      if (!text) return fail(text.error());
      if ((*text != right && *text != of_graph) || cable) {
        return values_.bad(*name,
                           fmt::format("NIC {} of server {} leads to {}, but in {} it leads to {}", *rail,
                                       in_quotes(server_node.scalar), in_quotes(*text), topology_.spec,
                                       cable ? "a server; write to and to-nic" : in_quotes(right)));
      }
    }
    if (auto right = check_other_end(node, server_node, far, link); !right) return right;
    // A cable of a ring is identified by its "+" end, if the server there is in use.
    if (cable && *rail == level->rails[1] && far->first >= 0) std::tie(link.server, link.rail) = *far;
    return {};
  }

  /// The name that the file gives a switch of the graph.
  std::string name_in_file(const std::string& of_graph) {
    if (file_.told.switch_names.empty()) return of_graph;
    if (names_.empty()) {
      for (const GraphNode& node : topology_.graph().nodes)
        if (node.is_switch) names_.emplace(node.name, name_in_links(file_.told, node));
    }
    const auto found = names_.find(of_graph);
    return found == names_.end() ? of_graph : found->second;
  }

  Result<void> check_other_end(const YamlNode& node, const YamlNode& server_node,
                               const std::optional<NicEnd>& far, const LinkOverride& link) {
    const YamlNode* to = FileValues::find(node, "to");
    const YamlNode* to_nic = FileValues::find(node, "to-nic");
    if (to == nullptr && to_nic == nullptr) return {};
    if (to == nullptr || to_nic == nullptr || !far) {
      return values_.bad(node,
                         !far ? fmt::format("to and to-nic are for cables between servers, but in {} NIC {} "
                                            "leads to a switch; write switch",
                                            topology_.spec, link.rail)
                              : "to and to-nic belong together; write both");
    }
    const auto server = values_.server(*to, file_, by_name_);
    if (!server) return fail(server.error());
    const auto rail = read_nic(*to_nic, *server);
    if (!rail) return fail(rail.error());
    if (*far == NicEnd(*server, *rail)) return {};
    const std::string right =
        far->first < 0 ? "a server that is not in use"
                       : fmt::format("NIC {} of server {}", far->second, file_.server_name(far->first));
    return values_.bad(
        *to,
        fmt::format("NIC {} of server {} leads to NIC {} of server {}, but in {} it leads to {}", link.rail,
                    in_quotes(server_node.scalar), *rail, in_quotes(to->scalar), topology_.spec, right));
  }

  Result<void> read_switch_link(const YamlNode& node, const YamlNode& ends, LinkOverride& link,
                                double& nominal) {
    for (const char* key : {"nic", "switch", "to", "to-nic"}) {
      if (const YamlNode* extra = FileValues::find(node, key))
        return values_.bad(*extra, fmt::format("{} is for cables of servers; leave it out", key));
    }
    if (auto list = values_.sequence(ends); !list) return list;
    if (ends.items.size() != 2)
      return values_.bad(
          ends, fmt::format("switches has {}; a cable joins two", counted(ends.items.size(), "name")));
    const auto a = values_.text(ends.items[0]), b = values_.text(ends.items[1]);
    if (!a) return fail(a.error());
    if (!b) return fail(b.error());
    if (topology_.num_links > kMostGraphLinks) {
      return values_.bad(node, fmt::format("{} has {} cables; links between switches can be listed if there "
                                           "are at most {}",
                                           topology_.spec, topology_.num_links, kMostGraphLinks));
    }
    list_switch_links();
    for (const SwitchPair& pair : {SwitchPair(*a, *b), SwitchPair(*b, *a)}) {
      const auto found = switch_links_.find(pair);
      if (found == switch_links_.end()) continue;
      std::tie(link.lower, link.upper) = found->second.names;
      nominal = found->second.rate;
      return {};
    }
    return values_.bad(
        node,
        fmt::format("{} has no cable between the switches {} and {}; `hips topo -v --format yaml` lists "
                    "all",
                    topology_.spec, in_quotes(*a), in_quotes(*b)));
  }

  void list_switch_links() {
    if (!switch_links_.empty()) return;
    Topology plain = topology_;
    plain.overrides.clear();
    const Graph graph = plain.graph();
    for (const GraphLink& link : graph.links) {
      if (link.a < topology_.num_servers()) continue;
      const GraphNode &a = graph.nodes[static_cast<std::size_t>(link.a)],
                      &b = graph.nodes[static_cast<std::size_t>(link.b)];
      const SwitchLink one{{a.name, b.name}, link.bandwidth_bytes_per_s};
      switch_links_.emplace(SwitchPair(name_in_links(file_.told, a), name_in_links(file_.told, b)), one);
      switch_links_.emplace(one.names, one);
    }
  }

  const FileValues& values_;
  const std::unordered_map<std::string, std::int64_t>& by_name_;
  TopologyFile& file_;
  Topology& topology_;
  struct SwitchLink {
    SwitchPair names;  ///< of the graph: the lower and the upper switch
    double rate = 0;   ///< of the level
  };
  std::set<LinkKey> seen_;
  std::unordered_map<std::string, std::string> names_;  ///< of switches, by those of the graph
  std::map<SwitchPair, SwitchLink> switch_links_;  ///< by the names of the graph, and by those of the file
};

}  // namespace

Result<void> read_file_links(const FileValues& values, const YamlNode& links,
                             const std::unordered_map<std::string, std::int64_t>& by_name,
                             TopologyFile& file) {
  return LinkReader(values, by_name, file).read(links);
}

}  // namespace hips::topology
