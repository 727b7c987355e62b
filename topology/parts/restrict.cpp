#include "topology/parts/restrict.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/cables.hpp"
#include "topology/families/family.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/part.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/formats/told_wiring.hpp"
#include "topology/graph_wiring.hpp"
#include "topology/parts/components.hpp"
#include "topology/parts/folded.hpp"
#include "topology/parts/relays.hpp"
#include "topology/parts/told_part.hpp"
#include "topology/rates.hpp"

namespace hips::topology {
namespace {

/// A smaller topology: its spec without rates and ranks, and the old levels that it keeps.
struct Remainder {
  std::string spec;
  std::vector<std::size_t> levels;  ///< of the old network levels, ascending
};

class Restriction {
 public:
  Restriction(const TopologyFile& file, const JobHosts& hosts)
      : file_(file), hosts_(hosts), levels_(network_levels(file.topology)) {}

  Result<TopologyFile> make() {
    if (auto found = find_servers(); !found) return fail(found.error());
    if (file_.topology.family == Family::kGraph)
      return graph_of(cut_out(file_.topology.wiring.value->graph, servers_, file_.server_names));
    auto left = remainder();
    if (!left) return fail(left.error());
    auto base = parse(left->spec);
    if (!base) return fail(base.error());
    made_.topology = std::move(*base);
    copy_rates(*left);
    levels_left_ = std::move(left->levels);
    const bool others_may_relay = file_.topology.servers_relay && !file_.topology.relay_off;
    if (!others_may_relay || num_components(made_.topology) == 1) return named();
    auto job = wiring_of_job();
    if (!job) return fail(job.error());
    return job->relays.empty() ? named() : graph_of(*std::move(job));
  }

 private:
  [[nodiscard]] tl::unexpected<Status> unsupported(std::string_view problem) const {
    return fail(Code::kUnsupported,
                fmt::format("the hosts of the job are {} of {} servers of {}: {}", servers_.size(),
                            file_.topology.num_servers(), file_.topology.name, problem));
  }

  Result<void> find_servers() {
    if (file_.server_names.empty()) {
      return fail(Code::kInvalidArgument,
                  fmt::format("{} has no server names to find hosts by; give a topology file with "
                              "servers: names, or a file of Slurm",
                              file_.topology.name));
    }
    std::unordered_map<std::string_view, std::int64_t> by_name;
    for (std::size_t i = 0; i < file_.server_names.size(); ++i)
      by_name.emplace(file_.server_names[i], static_cast<std::int64_t>(i));
    std::unordered_map<std::string_view, std::vector<std::int64_t>> by_short_name;
    for (std::size_t i = 0; i < file_.server_names.size(); ++i)
      by_short_name[short_name(file_.server_names[i])].push_back(static_cast<std::int64_t>(i));
    std::set<std::int64_t> found;
    for (const std::string& host : hosts_.names) {
      auto at = by_name.find(host);
      // A launcher may write the full name of a host, of which the topology has the first part, or the other way round.
      if (at == by_name.end()) at = by_name.find(short_name(host));
      std::int64_t server = at == by_name.end() ? -1 : at->second;
      if (const auto shorter = by_short_name.find(host); server < 0 && shorter != by_short_name.end()) {
        const auto name_of = [&](std::size_t i) {
          return in_quotes(file_.server_names[static_cast<std::size_t>(shorter->second[i])]);
        };
        server = shorter->second.front();
        if (shorter->second.size() > 1)
          return fail(Code::kInvalidArgument, fmt::format("host {} may be {} or {}; write its whole name",
                                                          in_quotes(host), name_of(0), name_of(1)));
      }
      if (server < 0) {
        return fail(Code::kInvalidArgument,
                    fmt::format("unknown host {}: the servers of {} are {} to {}", in_quotes(host),
                                file_.topology.name, in_quotes(file_.server_names.front()),
                                in_quotes(file_.server_names.back())));
      }
      found.insert(server);
    }
    servers_.assign(found.begin(), found.end());
    return {};
  }

  [[nodiscard]] Result<JobWiring> wiring_of_job() const {
    try {
      Graph whole = file_.topology.graph();
      for (GraphNode& node : whole.nodes)
        if (node.is_switch) node.name = std::string(name_in_links(file_.told, node));
      return cut_out(whole, servers_, file_.server_names);
    } catch (const Error& error) {
      return fail(error.status());
    }
  }

  /// NICs keep their numbers. Names of devices are dropped: graphs have none.
  Result<TopologyFile> graph_of(JobWiring job) {
    auto graph = make_graph_topology(std::move(job.graph));
    if (!graph) return fail(graph.error());
    made_ = {};
    made_.topology = *std::move(graph);
    levels_left_.clear();
    new_rail_.clear();
    for (Rail rail = 0; rail < file_.topology.num_rails; ++rail) new_rail_[rail] = rail;
    if (!job.relays.empty()) made_.notes = std::vector{relay_note(job.relays)};
    return named();
  }

  [[nodiscard]] std::string relay_note(const std::vector<std::int64_t>& relays) const {
    std::vector<std::string> names;
    for (const std::int64_t server : relays)
      names.push_back(file_.server_names[static_cast<std::size_t>(server)]);
    const bool one = names.size() == 1;
    return fmt::format(
        "{}: the servers of the job reach each other only through {} outside it; {} {} to relay, that is to forward "
        "between {} NICs, and {} no part in the job",
        file_.topology.name, one ? "a server" : fmt::format("{} servers", names.size()), folded(names),
        one ? "has" : "have", one ? "its" : "their", one ? "takes" : "take");
  }

  /// What was made, with what the file tells of it, the names of the servers and a spec.
  Result<TopologyFile> named() {
    made_.told = told_of_part(file_, made_.topology,
                              {.servers = servers_, .levels = levels_left_, .new_rail = new_rail_});
    for (const std::int64_t server : servers_)
      made_.server_names.push_back(file_.server_names[static_cast<std::size_t>(server)]);
    if (auto spec = name_spec(); !spec) return fail(spec.error());
    return std::move(made_);
  }

  /// The servers as a part of the whole. Plans for parts are trees instead of a hierarchy.
  [[nodiscard]] Remainder part() const {
    std::vector<std::int64_t> whole;
    for (const std::int64_t server : servers_) whole.push_back(file_.topology.whole_server(server));
    Topology shape = file_.topology;
    shape.part.clear();
    return {fmt::format("{}[{}]", topology_shape(shape), part_text(whole)), all_levels(true)};
  }

  Result<Remainder> remainder() {
    const std::size_t count = servers_.size();
    if (!file_.topology.part.empty() && count < file_.topology.part.size()) return part();
    if (count == static_cast<std::size_t>(file_.topology.num_servers()))
      return Remainder{topology_shape(file_.topology), all_levels(true)};
    switch (file_.topology.family) {
      case Family::kSwitch:
        return Remainder{fmt::format("switch:{}", count), all_levels(count > 1)};
      case Family::kRail:
        return Remainder{fmt::format("rail:{},{}", count, file_.topology.num_rails), all_levels(count > 1)};
      case Family::kLeafSpine:
      case Family::kFatTree:
        return tree();
      case Family::kBCube:
      case Family::kTorus:
      case Family::kMesh:
        return grid();
      case Family::kGraph:
        break;
    }
    return unsupported("its family has no parts");
  }

  [[nodiscard]] std::vector<std::size_t> all_levels(bool any) const {
    std::vector<std::size_t> all;
    for (std::size_t l = 0; any && l < levels_.size(); ++l) all.push_back(l);
    return all;
  }

  /// BCube, Torus and mesh: the servers are all those with certain digits; otherwise a part.
  Result<Remainder> grid() {
    std::vector<std::set<std::int64_t>> digits(levels_.size());
    for (const std::int64_t server : servers_) {
      std::int64_t rest = server;
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        digits[l].insert(rest % levels_[l].radix);
        rest /= levels_[l].radix;
      }
    }
    std::size_t product = 1;
    Remainder left;
    std::vector<std::size_t> radices;
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const std::size_t size = digits[l].size();
      product *= size;
      if (size == 1) continue;
      // A piece of a ring is not a ring.
      if (levels_[l].kind == LevelKind::kRing && static_cast<std::int64_t>(size) != levels_[l].radix)
        return part();
      // Any piece of a line is a line.
      if (levels_[l].kind == LevelKind::kLine &&
          *digits[l].rbegin() - *digits[l].begin() + 1 != static_cast<std::int64_t>(size))
        return part();
      left.levels.push_back(l);
      radices.push_back(size);
    }
    if (product != servers_.size()) return part();
    if (radices.empty()) {
      left.spec = "switch:1";
    } else {
      // A single radix would be read as n without k.
      const bool one_level = radices.size() == 1 && file_.topology.family == Family::kBCube;
      left.spec = fmt::format("{}:{}{}", entry_of(file_.topology.family).keyword, fmt::join(radices, "x"),
                              one_level ? ",0" : "");
    }
    return left;
  }

  /// Trees: any servers below a switch, if all switches of a tier have equally many and all cables between switches of the job
  /// are alike; otherwise a part.
  Result<Remainder> tree() {
    Remainder left;
    std::vector<std::int64_t> radices;
    std::vector<std::int64_t> parts = servers_;  // of this tier: servers, leaves, pods
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      std::map<std::int64_t, std::int64_t> children;  // by the switch above
      for (const std::int64_t part : parts) ++children[part / levels_[l].radix];
      const auto [least, most] =
          std::ranges::minmax_element(children, {}, &std::pair<const std::int64_t, std::int64_t>::second);
      if (least->second != most->second) return part();
      if (most->second > 1) {
        left.levels.push_back(l);
        radices.push_back(most->second);
      }
      parts.clear();
      for (const auto& [above, number] : children) parts.push_back(above);
    }
    const auto& topology = file_.topology;
    const bool crosses_switches = !left.levels.empty() && left.levels.back() > 0;
    const auto is_on_the_way = [&](const LinkOverride& link) {
      return link.server < 0 && is_between_used_switches(link) && level_of(link) <= left.levels.back();
    };
    if (crosses_switches && std::ranges::any_of(topology.overrides, is_on_the_way)) return part();
    if (radices.size() < 2) {
      left.spec = fmt::format("switch:{}", servers_.size());
    } else if (radices.size() == 2) {
      // An edge switch of a Fat-Tree has as many cables upwards as servers below, in use or not.
      std::int64_t spines = radices[0];
      if (topology.family == Family::kLeafSpine)
        spines = std::min(spines, topology.num_switches - levels_.back().radix);
      left.spec = fmt::format("leafspine:{},{},{}", radices[1], radices[0], spines);
    } else {
      return part();
    }
    return left;
  }

  /// The network level of a link between switches.
  std::size_t level_of(const LinkOverride& link) {
    if (level_of_link_.empty()) {
      const Graph graph = file_.topology.graph();
      const std::vector<std::size_t> levels = levels_of_links(file_.topology);
      const auto name = [&](std::int64_t node) { return graph.nodes[static_cast<std::size_t>(node)].name; };
      for (std::size_t i = 0; i < graph.links.size(); ++i)
        level_of_link_.emplace(std::pair(name(graph.links[i].a), name(graph.links[i].b)), levels[i]);
    }
    const auto known = level_of_link_.find({link.lower, link.upper});
    return known == level_of_link_.end() ? 0 : known->second;
  }

  /// Whether both ends are switches, or above switches, of servers of the job.
  bool is_between_used_switches(const LinkOverride& link) {
    if (!used_switches_) {
      used_switches_.emplace();
      const Graph graph = parse_topology(part().spec).graph();
      const std::vector<bool> used = those_in_use(graph);
      for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        if (graph.nodes[i].is_switch && used[i]) used_switches_->insert(graph.nodes[i].name);
    }
    return used_switches_->contains(link.lower) && used_switches_->contains(link.upper);
  }

  void copy_rates(const Remainder& left) {
    Topology& topology = made_.topology;
    // A single server of a switch or a rack has no level, but keeps its NICs.
    for (std::size_t i = 0; i < left.levels.size(); ++i) {
      const Level& old = levels_[left.levels[i]];
      Level& level = topology.levels[i];
      level.bandwidth_bytes_per_s = old.bandwidth_bytes_per_s;
      level.latency_ns = old.latency_ns;
      for (std::size_t r = 0; r < old.rails.size(); ++r) new_rail_[old.rails[r]] = level.rails[r];
    }
    // In a tree all levels share the NIC, whose rate is that of the lowest level. If this level is dropped,
    // the rate is kept.
    if (!left.levels.empty() && levels_[0].kind == LevelKind::kTree)
      topology.levels[0].bandwidth_bytes_per_s =
          std::min(topology.levels[0].bandwidth_bytes_per_s, levels_[0].bandwidth_bytes_per_s);
    if (left.levels.empty()) {
      for (Rail rail = 0; rail < topology.num_rails; ++rail) new_rail_[rail] = rail;
    }
    topology.relay_off = topology.servers_relay && file_.topology.relay_off && topology.part.empty();
    std::unordered_map<std::int64_t, std::int64_t> new_server;
    for (std::size_t i = 0; i < servers_.size(); ++i)
      new_server.emplace(servers_[i], static_cast<std::int64_t>(i));
    copy_overrides(new_server);
    copy_devices(new_server);
  }

  void copy_overrides(const std::unordered_map<std::int64_t, std::int64_t>& new_server) {
    Topology& topology = made_.topology;
    const bool all = servers_.size() == static_cast<std::size_t>(file_.topology.num_servers());
    for (const LinkOverride& old : file_.topology.overrides) {
      if (old.server < 0) {
        // A part keeps all switches and their names; a job below one switch crosses no cable between switches.
        if (all || (!topology.part.empty() && is_between_used_switches(old)))
          topology.overrides.push_back(old);
        continue;
      }
      const auto server = new_server.find(old.server);
      const auto rail = new_rail_.find(old.rail);
      if (server == new_server.end() || rail == new_rail_.end()) continue;
      // A cable to a server that the job does not use is not part of the smaller topology.
      const auto far = other_end(file_.topology, old.server, old.rail);
      if (far && !new_server.contains(far->first)) continue;
      LinkOverride link = old;
      link.server = server->second;
      link.rail = rail->second;
      topology.overrides.push_back(std::move(link));
    }
    std::ranges::sort(topology.overrides, {}, [](const LinkOverride& link) {
      return std::tuple(link.server < 0, link.server, link.rail, link.lower, link.upper);
    });
  }

  void copy_devices(const std::unordered_map<std::int64_t, std::int64_t>& new_server) {
    const auto kept = [&](const std::vector<std::string>& old) {
      std::vector<std::string> devices(static_cast<std::size_t>(made_.topology.num_rails));
      for (const auto& [from, to] : new_rail_)
        devices[static_cast<std::size_t>(to)] = old[static_cast<std::size_t>(from)];
      return devices;
    };
    if (!file_.devices.empty()) made_.devices = kept(file_.devices);
    for (const auto& [server, devices] : file_.other_devices) {
      if (const auto at = new_server.find(server); at != new_server.end())
        made_.other_devices.emplace(at->second, kept(devices));
    }
  }

  Result<void> name_spec() {
    Topology& topology = made_.topology;
    if (!has_plain_spec(topology)) {
      topology.spec = fmt::format("{}{}", kPartOf, file_.topology.spec);
    } else if (!topology.levels.empty() &&
               topology.levels[0].bandwidth_bytes_per_s != kDefaultBandwidthBytesPerS) {
      topology.spec += "@" + rate_text(topology.levels[0].bandwidth_bytes_per_s);
    }
    const std::int32_t ranks =
        hosts_.ranks_per_host > 1 ? hosts_.ranks_per_host : file_.topology.ranks_per_server;
    return add_node_level(topology.spec, std::to_string(ranks), topology);
  }

  const TopologyFile& file_;
  const JobHosts& hosts_;
  std::span<const Level> levels_;
  std::vector<std::int64_t> servers_;     ///< in use, ascending
  std::vector<std::size_t> levels_left_;  ///< the old network levels that are kept
  std::map<Rail, Rail> new_rail_;         ///< by old NIC
  std::map<std::pair<std::string, std::string>, std::size_t> level_of_link_;
  std::optional<std::unordered_set<std::string>> used_switches_;  ///< by name in the graph
  TopologyFile made_;
};

}  // namespace

Result<TopologyFile> restrict_to(const TopologyFile& file, const JobHosts& hosts) {
  return Restriction(file, hosts).make();
}

}  // namespace hips::topology
